package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"flashsale/internal/bench"
)

// brief is a bench that ends within seconds.
func brief(args ...string) []string {
	return append([]string{"bench", "--listen", "127.0.0.1:0", "--variants", "none,atomic", "--runs", "2", "--users", "8", "--duration", "150ms",
		"--race-users", "40", "--race-stock", "10", "--seed", "1", "--warm-up", "50ms"}, args...)
}

func TestBenchOnStandIns(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "out")
	s := call(t.Context(), brief("--out", dir)...)
	if s.err != nil {
		t.Fatalf("%v\n%s%s", s.err, s.stdout.String(), s.stderr.String())
	}
	out := s.stdout.String()
	for _, want := range []string{"# flashsale bench", "Medians of 2 interleaved runs", "## Closed model, 8 users, 150ms", "## Race: 40 users for 10 units",
		"atomic: nothing oversold, lost or gone in any run", "seed 1", "stand-in within this process", "The generator's own part can't be told apart", "Command: `flashsale bench --listen", "Written to " + dir} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	if !regexp.MustCompile(`(?m)^\| none +\| +\d+ (?:\(\d+-\d+\) )?\| +[1-9]\d* `).MatchString(out) {
		t.Errorf("no lock did not oversell in\n%s", out)
	}
	if progress := s.stderr.String(); strings.Count(progress, "\n") != 8 || strings.ContainsAny(progress, "\r\x1b") || !strings.Contains(progress, "[8/8] run 2, ") {
		t.Errorf("progress:\n%s", progress)
	}
	checkFolder(t, dir, "latency.png latency.svg oversell.png oversell.svg report.json report.md")

	markdown, err := os.ReadFile(filepath.Join(dir, "report.md"))
	if err != nil || !bytes.Contains(markdown, []byte("](oversell.svg)")) || !bytes.Contains(markdown, []byte("](latency.svg)")) {
		t.Errorf("report.md: %v\n%s", err, markdown)
	}
}

// checkFolder wants these files, each whole.
func checkFolder(t *testing.T, dir, want string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, entry := range entries {
		got = append(got, entry.Name())
		content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		switch filepath.Ext(entry.Name()) {
		case ".png":
			_, err = png.Decode(bytes.NewReader(content))
		case ".svg":
			for decoder := xml.NewDecoder(bytes.NewReader(content)); err == nil; {
				_, err = decoder.Token()
			}
			if errors.Is(err, io.EOF) {
				err = nil
			}
		case ".json":
			err = json.Unmarshal(content, new(bench.Report))
		}
		if err != nil {
			t.Errorf("%s: %v", entry.Name(), err)
		}
	}
	if strings.Join(got, " ") != want {
		t.Errorf("%s holds %q, want %s", dir, got, want)
	}
}

func TestBenchOpenModelAsJSON(t *testing.T) {
	s := call(t.Context(), "bench", "--listen", "127.0.0.1:0", "--variants", "atomic,etcd", "--runs", "1", "--model", "open", "--rate", "40,80",
		"--duration", "300ms", "--race-users", "0", "--stock", "5", "--warm-up", "0", "--json")
	if s.err != nil {
		t.Fatalf("%v\n%s", s.err, s.stderr.String())
	}
	var r bench.Report
	decoder := json.NewDecoder(strings.NewReader(s.stdout.String()))
	if err := decoder.Decode(&r); err != nil || decoder.More() {
		t.Fatalf("stdout isn't one object: %v\n%s", err, s.stdout.String())
	}
	var got []string
	for _, summary := range r.Summaries {
		got = append(got, summary.Variant)
		switch {
		case summary.Variant == "etcd":
			if summary.Skipped == nil || *summary.Skipped != "needs etcd" {
				t.Errorf("etcd: %+v", summary)
			}
		case summary.Accepted.Median != 5 || summary.SoldOut.Median < 1 || summary.Arrivals.Median != summary.Accepted.Median+summary.SoldOut.Median || !summary.Settled:
			t.Errorf("summary %+v", summary)
		}
	}
	if !slices.Equal(got, []string{"atomic", "atomic", "etcd", "etcd"}) || r.Partial != nil || !r.InProcess || r.Servers["redis"].Real || r.Environment.Cores < 1 {
		t.Errorf("%v: %s", got, s.stdout.String())
	}
}

func TestBenchOfARunningAPI(t *testing.T) {
	up, stop := serving(t, "up", "--listen", "127.0.0.1:0")
	defer stop()
	url := regexp.MustCompile(`(?m)^api +(http://[^, ]+)`).FindStringSubmatch(up.stdout.String())[1]
	token := regexp.MustCompile(`Admin token: (\S+)`).FindStringSubmatch(up.stdout.String())[1]

	args := []string{"bench", "--url", url, "--variants", "atomic,mysql-row", "--runs", "1", "--users", "4", "--duration", "100ms", "--race-users", "20", "--race-stock", "5", "--work", "1ms-2ms", "--warm-up", "20ms"}
	s := call(t.Context(), append([]string{"FLASHSALE_ADMIN_TOKEN=" + token}, args...)...)
	if s.err != nil {
		t.Fatalf("%v\n%s%s", s.err, s.stdout.String(), s.stderr.String())
	}
	for _, want := range []string{"skipped: needs MySQL", "generator's own share", "those of the API at " + url, "and stay there, closed", "work 1-2 ms within"} {
		if !strings.Contains(s.stdout.String(), want) {
			t.Errorf("%q is missing in\n%s", want, s.stdout.String())
		}
	}
	s = call(t.Context(), append(args, "--admin-token", token, "--json")...)
	var r bench.Report
	if err := json.Unmarshal([]byte(s.stdout.String()), &r); err != nil || s.err != nil {
		t.Fatalf("%v, %v", s.err, err)
	}
	if strings.Contains(s.stdout.String(), token) || !strings.Contains(r.Command, "--admin-token ...") || r.Servers != nil || r.InProcess {
		t.Errorf("command %s, servers %v", r.Command, r.Servers)
	}
	for _, sample := range r.Samples {
		if sample.Variant == "atomic" && (!sample.Settled || sample.Persisted != sample.Accepted || sample.Accepted == 0) {
			t.Errorf("not audited: %+v", sample)
		}
	}

	s = call(t.Context(), append(args, "--admin-token", "wrong-token")...)
	if s.err == nil || !strings.Contains(s.err.Error(), "401") || report(s.err, &s.stderr) != exitFault {
		t.Errorf("wrong token: %v", s.err)
	}
	if s := call(t.Context(), "bench", "--url", "http://127.0.0.1:1", "--admin-token", token); s.err == nil || !strings.Contains(s.err.Error(), "connection refused") {
		t.Errorf("nobody there: %v", s.err)
	}
}

func TestInterruptedBenchReportsWhatItHas(t *testing.T) {
	dir := t.TempDir()
	s := interrupted(t, "bench", "--listen", "127.0.0.1:0", "--variants", "atomic", "--duration", "1h", "--warm-up", "0", "--out", dir)
	if report(s.err, io.Discard) != exitInterrupted {
		t.Errorf("error %v", s.err)
	}
	if !strings.Contains(s.stdout.String(), "**PARTIAL: 1 of 6 measurements were made, then: interrupted.**") {
		t.Errorf("not said to be partial:\n%s", s.stdout.String())
	}
	checkFolder(t, dir, "oversell.png oversell.svg report.json report.md")
}

func TestFoldersOfOthersAreLeftAlone(t *testing.T) {
	parent := t.TempDir()
	theirs := filepath.Join(parent, "report.md")
	if err := os.WriteFile(theirs, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	var paths []string
	for range 3 { // within one second
		f, err := openFolder(parent)
		if err != nil || filepath.Dir(f.path) != parent || !strings.Contains(f.remark, "is not empty") {
			t.Fatalf("%+v, %v", f, err)
		}
		if err := f.write(new(bench.Report)); err != nil {
			t.Fatal(err)
		}
		if err := f.write(new(bench.Report)); !errors.Is(err, os.ErrExist) {
			t.Errorf("written over: %v", err)
		}
		paths = append(paths, f.path)
		_ = f.closeAfter(nil)
		checkFolder(t, f.path, "report.json report.md")
	}
	slices.Sort(paths)
	if text, err := os.ReadFile(theirs); err != nil || string(text) != "mine" || len(slices.Compact(paths)) != 3 {
		t.Errorf("%s, %v, %v", text, err, paths)
	}

	unused, err := openFolder(filepath.Join(parent, "unused"))
	if err != nil {
		t.Fatal(err)
	}
	if broken := errors.New("broken"); unused.closeAfter(broken) != broken {
		t.Error("the error got lost")
	}
	if _, err := os.Stat(unused.path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an empty folder is left behind: %v", err)
	}
	if _, err := openFolder(theirs); report(err, io.Discard) != exitUsage {
		t.Errorf("a file as a folder: %v", err)
	}

	probed := t.TempDir()
	if _, err := openFolder(probed); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(probed); err != nil || len(left) > 0 {
		t.Errorf("left in an empty folder: %v, %v", left, err)
	}
}

// An empty folder that can't be written to is refused before anything is measured.
func TestReadOnlyFolderIsRefused(t *testing.T) {
	dir := t.TempDir()
	if os.Geteuid() == 0 { // who may write everywhere, but in /proc
		dir = emptyFolderOf(t, "/proc/irq/*/*")
	} else if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	if _, err := openFolder(dir); report(err, io.Discard) != exitUsage || !strings.Contains(err.Error(), dir) {
		t.Errorf("%s: %v", dir, err)
	}
}

func emptyFolderOf(t *testing.T, pattern string) string {
	names, _ := filepath.Glob(pattern)
	for _, name := range names {
		if entries, err := os.ReadDir(name); err == nil && len(entries) == 0 {
			return name
		}
	}
	t.Skip("no folder that root can't write to")
	return ""
}

func TestArticleOnStandIns(t *testing.T) {
	args := []string{"bench", "article", "--listen", "127.0.0.1:0", "--runs", "1", "--duration", "100ms", "--seed", "1"}
	s := call(t.Context(), append(args, "--json")...)
	if s.err != nil {
		t.Fatalf("%v\n%s", s.err, s.stderr.String())
	}
	var a bench.Article
	if err := json.Unmarshal([]byte(s.stdout.String()), &a); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"none 1500", "setnx 800", "watchdog 1200"} {
		row := a.Rows[i]
		name, qps, _ := strings.Cut(want, " ")
		if row.Variant != name || len(row.Ours) != 2 || row.Ours[0].Clients != 1 || row.Ours[1].Clients != 64 || whole(row.Theirs.PerS) != qps {
			t.Errorf("%s: %+v", want, row)
		}
		for _, ours := range row.Ours {
			if ours.PerS.Median <= 0 || ours.OfNoLock == nil || ours.OfNoLock.Median <= 0 {
				t.Errorf("%s: %+v", want, ours)
			}
		}
		if oversold := row.Race.OversellRate.Median > 0; oversold != (name == bench.NoLock) {
			t.Errorf("%s: oversell rate %v", name, row.Race.OversellRate)
		}
	}
	if len(a.Explanation) != 5 || !strings.Contains(a.Explanation[0], "stand-ins for kafka, redis and sql") || len(a.Report.Samples) != 9 {
		t.Errorf("%q", a.Explanation)
	}
}

func whole(x float64) string { return strings.ReplaceAll(bench.Thousands(int64(x)), ",", "") }

func TestCommandLineHoldsNoSecrets(t *testing.T) {
	for want, args := range map[string][]string{
		"flashsale bench --json":                              {"bench", "--json"},
		"flashsale --admin-token ... --url http://h:1":        {"--admin-token", "s3cret", "--url", "http://h:1"},
		"flashsale --admin-token=...":                         {"--admin-token=s3cret"},
		"flashsale --mysql 'root:...@tcp(h:1)/db?a=b'":        {"--mysql", "root:s3cret@tcp(h:1)/db?a=b"},
		`flashsale --out 'it'\''s here'`:                      {"--out", "it's here"},
		"flashsale --redlock redis://u:...@h:1,redis://h:2":   {"--redlock", "redis://u:s3cret@h:1,redis://h:2"},
		"flashsale --redlock redis://:...@h:1,redis://:...@i": {"--redlock", "redis://:s3cret@h:1,redis://:s3cret@i"},
		"flashsale --mysql 'root:...@tcp(h:1)/db'":            {"--mysql", "root:s3c@r/t@tcp(h:1)/db"},
	} {
		if got := commandLine(args); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestProgressBar(t *testing.T) {
	var line bytes.Buffer
	s := newScreen(&line, &line)
	s.terminal, s.bar, s.what, s.expected = true, true, "run 1, atomic closed, 64 users", time.Second
	s.step(2, 4)
	s.progress(bench.Progress{Phase: bench.PhaseRun, Elapsed: 500 * time.Millisecond, Accepted: 1234})
	if want := "\r\x1b[K[#######.............] 2/4 run 1, atomic closed, 64 users: run 0.5 s, 1,234 accepted"; line.String() != want {
		t.Errorf("%q", line.String())
	}
	s.step(4, 4)
	line.Reset()
	s.progress(bench.Progress{Phase: bench.PhaseAudit, Elapsed: time.Hour})
	if !strings.HasPrefix(line.String(), "\r\x1b[K["+strings.Repeat("#", 20)+"] 4/4") {
		t.Errorf("%q", line.String())
	}
	line.Reset()
	s.say("done")
	if line.String() != "\r\x1b[Kdone\n" {
		t.Errorf("%q", line.String())
	}
}
