package locktest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The table of faults names tests; they have to be there.
func TestFaultIsListedWithoutATest(t *testing.T) {
	table, err := os.ReadFile("../../../docs/lock-faults.md")
	if err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	for _, pattern := range []string{"../*_test.go", "../*/*_test.go", "locktest.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			code.Write(text)
		}
	}
	rows := 0
	for line := range strings.Lines(string(table)) {
		cells := strings.Split(line, "|")
		if len(cells) != 4 || strings.HasPrefix(cells[1], " fault") || strings.HasPrefix(cells[1], "-") {
			continue
		}
		rows++
		names := regexp.MustCompile(`Test\w+|\*[^*]+\*`).FindAllString(cells[2], -1)
		if len(names) == 0 {
			t.Errorf("no test is named for: %s", cells[1])
		}
		for _, name := range names {
			there := "func " + name + "("
			if quoted, ok := strings.CutPrefix(name, "*"); ok {
				there = `{"` + strings.TrimSuffix(quoted, "*") + `",`
			}
			if !strings.Contains(code.String(), there) {
				t.Errorf("%s isn't there", name)
			}
		}
	}
	if rows < 15 {
		t.Errorf("read %d rows", rows)
	}
}
