package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// wantFiles reads the Markdown, JUnit and SVG of a run and holds them against
// the JSON, which execScript has read.
func (r result) wantFiles(t *testing.T, name string, rows int) {
	t.Helper()
	if len(r.report.Rows) != rows {
		t.Errorf("%s.json has %d rows, want %d", name, len(r.report.Rows), rows)
	}

	md := r.file(t, name+".md")
	table := 0
	for line := range strings.Lines(md) {
		if strings.HasPrefix(line, "| ") {
			table++
		}
	}
	if table != rows+2 || !strings.HasPrefix(md, "# ") || !strings.Contains(md, "!["+"chart]("+name+".svg)") {
		t.Errorf("%s.md has %d lines of a table, want %d:\n%s", name, table, rows+2, md)
	}

	var suites struct {
		XMLName xml.Name `xml:"testsuites"`
		Suites  []struct {
			Tests    int `xml:"tests,attr"`
			Failures int `xml:"failures,attr"`
			Cases    []struct {
				Class   string    `xml:"classname,attr"`
				Name    string    `xml:"name,attr"`
				Failure *struct{} `xml:"failure"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal([]byte(r.file(t, name+".xml")), &suites); err != nil {
		t.Fatalf("%s.xml: %v", name, err)
	}
	cases, failures := 0, 0
	for _, suite := range suites.Suites {
		if suite.Tests != len(suite.Cases) {
			t.Errorf("%s.xml: a suite says %d tests and has %d", name, suite.Tests, len(suite.Cases))
		}
		cases += len(suite.Cases)
		for _, c := range suite.Cases {
			if c.Name == "" || c.Class == "" {
				t.Errorf("%s.xml: a test case without a name", name)
			}
			if c.Failure != nil {
				failures++
			}
		}
		failures -= suite.Failures
	}
	if want := len(r.report.Judged) + len(r.report.Faults); cases != want || cases == 0 {
		t.Errorf("%s.xml has %d test cases, want %d", name, cases, want)
	}
	if failures != 0 {
		t.Errorf("%s.xml: failures do not add up", name)
	}

	svg := r.file(t, name+".svg")
	if words := wellFormed(t, name+".svg", svg, "svg"); strings.Contains(svg, "NaN") || strings.Contains(svg, "Infinity") {
		t.Errorf("%s.svg has a figure that is none: %s", name, svg)
	} else {
		for _, row := range r.report.Rows {
			if !strings.Contains(words, row.Label) && !strings.Contains(words, row.Variant) {
				t.Errorf("%s.svg does not name %s", name, row.Label)
			}
		}
	}
}

// wellFormed parses XML to its end and returns its text.
func wellFormed(t *testing.T, name, text, root string) string {
	t.Helper()
	var words strings.Builder
	first := ""
	for dec := xml.NewDecoder(strings.NewReader(text)); ; {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			if first == "" {
				first = token.Name.Local
			}
		case xml.CharData:
			words.Write(token)
		}
	}
	if first != root {
		t.Errorf("%s begins with <%s>, want <%s>", name, first, root)
	}
	return words.String()
}

func (r result) file(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(r.out, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(bytes.TrimSpace(data))
}

func TestRaceWritesItsReport(t *testing.T) {
	t.Parallel()
	r := race(t, raceScript, newFakeAPI(t).URL, "VARIANTS=none,atomic", "RETRY_MS=1000", "TIMEOUT_MS=4000")
	r.want(t, exitOK)
	r.wantFiles(t, "race", 2)
	// one that fails has the failures in its files
	r = race(t, raceScript, newFakeAPI(t).URL, "VARIANTS=none", "UNSAFE=")
	r.want(t, exitThresholds)
	r.wantFiles(t, "race", 1)
	if md := r.file(t, "race.md"); !strings.Contains(md, "- `fs_oversold{variant:none} count==0 (count was 3)`") {
		t.Errorf("race.md does not name the threshold that failed:\n%s", md)
	}
	if !strings.Contains(r.file(t, "race.xml"), `<failure message="fs_oversold{variant:none} count==0 (count was 3)"`) {
		t.Error("race.xml does not name the threshold that failed")
	}
	// and one that never began still has files, which are no success
	r = race(t, raceScript, newFakeAPI(t).URL, "ADMIN_TOKEN=wrong")
	r.want(t, exitException)
	r.wantFiles(t, "race", 1)
	if !strings.Contains(r.file(t, "race.svg"), "not measured") {
		t.Error("race.svg shows figures of a race that never was")
	}
}

// Answers and audit are counted at two ends; no threshold can compare them.
func TestRaceTellsOfAContradiction(t *testing.T) {
	t.Parallel()
	api := newFakeAPI(t)
	api.misreport = func(audit map[string]any) { audit["accepted"], audit["remaining"] = 4, 1 }
	r := race(t, raceScript, api.URL)
	r.want(t, exitThresholds, "Contradictions:", "atomic: 5 answers were 201, and the audit has 4 accepted")
	r.wantFiles(t, "race", 1)
}

func TestNamesAreEscaped(t *testing.T) {
	t.Parallel()
	path := mutatedScript(t, "race.js", "label: variant,", `label: variant + ' <&"\u0001> | x',`)
	r := race(t, path, newFakeAPI(t).URL)
	r.want(t, exitOK)
	wellFormed(t, "race.svg", r.file(t, "race.svg"), "svg")
	wellFormed(t, "race.xml", r.file(t, "race.xml"), "testsuites")
	if md := r.file(t, "race.md"); !strings.Contains(md, `> \| x`) {
		t.Errorf("race.md has a cell that ends the cell:\n%s", md)
	}
}
