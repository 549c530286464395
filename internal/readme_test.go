package internal_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"flashsale/internal/app"
	"flashsale/internal/catalogue"
	"flashsale/internal/httpapi"
)

// The README's promises that can be looked up are looked up.

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestReadmeHasEverySettingWithItsDefault(t *testing.T) {
	var help bytes.Buffer
	if _, _, err := app.ParseConfig(app.APIProgram, []string{"--help"}, nil, &help); !errors.Is(err, app.ErrHelp) {
		t.Fatal(err)
	}
	settings := regexp.MustCompile(`(?m)^  (FLASHSALE_[A-Z_]+), --.*\n(?:      .*\n)*?      default: (.+)$`).
		FindAllStringSubmatch(help.String(), -1)
	if want := strings.Count(help.String(), "  FLASHSALE_"); len(settings) != want || want == 0 {
		t.Fatalf("read %d of %d settings from the help", len(settings), want)
	}
	rows := make(map[string]string)
	for _, row := range regexp.MustCompile("(?m)^\\| `(FLASHSALE_[A-Z_]+)` \\| ([^|]+) \\|").FindAllStringSubmatch(readme(t), -1) {
		rows[row[1]] = strings.Trim(row[2], "` ")
	}
	for _, s := range settings {
		name, initial := s[1], s[2]
		switch row, ok := rows[name]; {
		case !ok:
			t.Errorf("README.md has no row for %s", name)
		case initial != "none" && row != initial:
			t.Errorf("README.md says that %s is %q by default, the help says %q", name, row, initial)
		}
		delete(rows, name)
	}
	for name := range rows {
		t.Errorf("README.md has a row for %s, which no program reads", name)
	}
}

func TestReadmeCatalogueCanBeLoaded(t *testing.T) {
	example := regexp.MustCompile("(?s)```csv\n(.*?)```").FindStringSubmatch(readme(t))
	if example == nil {
		t.Fatal("README.md has no catalogue")
	}
	sales, err := catalogue.Parse(strings.NewReader(example[1]), app.Config{}.Offered(), nil)
	if err != nil || len(sales) != strings.Count(example[1], "\n")-1 {
		t.Errorf("%d sales, %v", len(sales), err)
	}
}

func TestReadmeLinksToWhatExists(t *testing.T) {
	links := regexp.MustCompile(`\]\(([^)#:]+)\)`).FindAllStringSubmatch(readme(t), -1)
	if len(links) == 0 {
		t.Fatal("no links found")
	}
	for _, link := range links {
		if _, err := os.Stat(filepath.Join("..", link[1])); err != nil {
			t.Errorf("README.md links to %s, which is not there", link[1])
		}
	}
}

func TestReadmeNamesTargetsAndTestsThatExist(t *testing.T) {
	text := readme(t)
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?m)(?:`|^    )make ([a-z-]+)[`\n]").FindAllStringSubmatch(text, -1) {
		if !strings.Contains(string(makefile), "\n"+m[1]+":") {
			t.Errorf("README.md names make %s, which the Makefile hasn't got", m[1])
		}
	}
	runs := regexp.MustCompile("`bin/testrun go test ([a-z0-9./ ]+)( -run ([A-Za-z]+))?`((?:, `... -run [A-Za-z]+`)*)").FindAllStringSubmatch(text, -1)
	if len(runs) == 0 {
		t.Fatal("no test commands found")
	}
	for _, run := range runs {
		tests := testsOf(t, strings.Fields(run[1]))
		for _, pattern := range regexp.MustCompile(`-run ([A-Za-z]+)`).FindAllStringSubmatch(run[0], -1) {
			if !regexp.MustCompile(`(?m)^func ` + strings.Replace("Test.*"+pattern[1], "Test.*Test", "Test", 1)).MatchString(tests) {
				t.Errorf("README.md runs %s, but no test of %s is so named", pattern[1], run[1])
			}
		}
	}
}

// Pages that have commands for the reader, beside the README.
func pages(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../docs/*.md")
	if err != nil || len(files) == 0 {
		t.Fatal("no pages found", err)
	}
	texts := make(map[string]string)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts[filepath.Base(file)] = string(text)
	}
	return texts
}

func TestPagesLinkToWhatExists(t *testing.T) {
	for page, text := range pages(t) {
		for _, link := range regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`).FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join("../docs", link[1])); err != nil {
				t.Errorf("docs/%s links to %s, which is not there", page, link[1])
			}
		}
	}
}

// The commands of pages run tests that exist, and the lines that they are said
// to print name tests that these commands run.
func TestPagesNameTestsThatExist(t *testing.T) {
	command := regexp.MustCompile("go test ([a-z0-9./ ]+) -run '?([A-Za-z0-9$|]+)'?[^\n]*((?:\n *--- PASS: .*)*)")
	found := 0
	for page, text := range pages(t) {
		for _, run := range command.FindAllStringSubmatch(text, -1) {
			found++
			tests := testsOf(t, strings.Fields(run[1]))
			named := regexp.MustCompile(`(?m)^func (Test\w*)\(`).FindAllStringSubmatch(tests, -1)
			for pattern := range strings.SplitSeq(run[2], "|") {
				if !slices.ContainsFunc(named, func(name []string) bool { return regexp.MustCompile(pattern).MatchString(name[1]) }) {
					t.Errorf("docs/%s runs %s, but no test of %s is so named", page, pattern, run[1])
				}
			}
			for _, line := range regexp.MustCompile(`--- PASS: (\w+)(?:/(\S+))?`).FindAllStringSubmatch(run[3], -1) {
				if !regexp.MustCompile(run[2]).MatchString(line[1]) || !strings.Contains(tests, "func "+line[1]+"(") {
					t.Errorf("docs/%s: %s does not run %s", page, run[2], line[1])
				}
				if sub := strings.ReplaceAll(line[2], "_", " "); !strings.Contains(tests, sub) {
					t.Errorf("docs/%s: %s has no case %q", page, line[1], sub)
				}
			}
		}
	}
	if found < 10 {
		t.Errorf("only %d commands found", found)
	}
}

// docs/api.md has every code that the API answers with, and no other.
func TestPagesHaveEveryCodeOfTheAPI(t *testing.T) {
	var named []string
	for _, row := range regexp.MustCompile("(?m)^\\| [1-5]\\d\\d \\|((?: `\\w+`)+) \\|").FindAllStringSubmatch(pages(t)["api.md"], -1) {
		named = append(named, strings.Fields(strings.ReplaceAll(row[1], "`", ""))...)
	}
	known := slices.DeleteFunc(httpapi.Outcomes(), func(code string) bool { return code == httpapi.Outcome(nil) })
	slices.Sort(named)
	slices.Sort(known)
	if !slices.Equal(named, known) {
		t.Errorf("docs/api.md has %q, the API %q", named, known)
	}
}

// Every variant has its two rows in the comparison.
func TestEveryVariantIsCompared(t *testing.T) {
	doc, err := os.ReadFile("lock/doc.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range app.Variants() {
		if rows := len(regexp.MustCompile(`(?m)^//\t`+name+` `).FindAllString(string(doc), -1)); rows < 2 {
			t.Errorf("lock/doc.go has %d rows for %s, want what it protects against, and what it costs", rows, name)
		}
	}
}

// testsOf is the text of the test files in the folders.
func testsOf(t *testing.T, folders []string) string {
	t.Helper()
	var text bytes.Buffer
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join("..", strings.TrimSuffix(folder, "/..."), "*_test.go"))
		if err != nil || len(files) == 0 {
			t.Errorf("README.md tests %s, where no test is", folder)
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			text.Write(content)
		}
	}
	return text.String()
}
