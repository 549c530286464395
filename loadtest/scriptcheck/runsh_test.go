package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMain lets the test program stand in for k6, so that run.sh can be run:
// the flags of k6 that run.sh uses, and scriptcheck behind them.
func TestMain(m *testing.M) {
	if version := os.Getenv("STAND_IN_FOR_K6"); version != "" {
		os.Exit(asK6(version, os.Args[1:]))
	}
	os.Exit(m.Run())
}

func asK6(version string, args []string) int {
	if log := os.Getenv("STAND_IN_LOG"); log != "" {
		f, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			fmt.Fprintf(f, "%q duration=%q usage=%q\n", args, os.Getenv("K6_DURATION"), os.Getenv("K6_NO_USAGE_REPORT"))
			err = f.Close()
		}
		if err != nil {
			return 1
		}
	}
	switch {
	case len(args) == 1 && args[0] == "version":
		fmt.Println("k6 " + version + " (go1.26, linux/amd64)")
		return 0
	case len(args) == 2 && args[1] == "--help":
		if !strings.HasPrefix(version, "v1.0.") {
			fmt.Println("      --new-machine-readable-summary   the newer shape")
		}
		return 0
	}
	if v := os.Getenv("VARIANT"); v != "" && v == os.Getenv("STAND_IN_CRASHES_ON") {
		return 109
	}
	flags := []string{"-include-system-env-vars"}
	for _, arg := range args[1:] {
		if arg != "--quiet" {
			flags = append(flags, arg)
		}
	}
	return run(context.Background(), flags, os.Stdout, os.Stderr)
}

// runSh runs run.sh with the stand-in; env wins over the defaults. What follows a
// space in script is a further argument.
func runSh(t *testing.T, script string, env ...string) result {
	t.Helper()
	r := result{out: filepath.Join(t.TempDir(), "made by", "run.sh")}
	cmd := exec.CommandContext(t.Context(), "sh", append([]string{"../run.sh"}, strings.Fields(script)...)...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "K6=" + os.Args[0], "STAND_IN_FOR_K6=v2.3.0", "OUT=" + r.out}, env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	r.code, r.stdout, r.stderr = cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()
	if data, err := os.ReadFile(filepath.Join(r.out, script+".json")); err == nil {
		if err := json.Unmarshal(data, &r.report); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func fakeSettings(api *fakeAPI, more ...string) []string {
	return append([]string{"BASE_URL=" + api.URL, "ADMIN_TOKEN=" + fakeToken, "USERS=12", "STOCK=5", "LEAD_MS=50", "RETRY_MS=20000", "TIMEOUT_MS=20000", "AUDIT_WAIT_S=5"}, more...)
}

func TestRunShJoinsTheVariants(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "log")
	r := runSh(t, "race", fakeSettings(newFakeAPI(t), "VARIANTS=none,setnx,atomic", "STAND_IN_LOG="+log, "K6_DURATION=1s")...)
	r.want(t, exitOK, "== race, setnx ==", "8 of 5", "37.5 %", "Every threshold holds", "Exit code: 0")
	r.wantFiles(t, "race", 3)
	for _, name := range []string{"race-none.json", "race-setnx.md", "race-atomic.svg", "race-atomic.xml"} {
		r.file(t, name)
	}
	calls, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(calls), `"--new-machine-readable-summary=false"`); n != 4 {
		t.Errorf("the shape of the summary is pinned in %d runs, want 4:\n%s", n, calls)
	}
	if strings.Contains(string(calls), fakeToken) {
		t.Errorf("the token is among the arguments:\n%s", calls)
	}
	if n := strings.Count(string(calls), `duration="" usage="true"`); n < 4 {
		t.Errorf("K6_DURATION reaches k6, or usage is reported:\n%s", calls)
	}
}

func TestRunShWithAnEarlyK6(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "log")
	runSh(t, "race", fakeSettings(newFakeAPI(t), "VARIANTS=atomic", "STAND_IN_FOR_K6=v1.0.0", "STAND_IN_LOG="+log)...).want(t, exitOK)
	if calls, err := os.ReadFile(log); err != nil || strings.Contains(string(calls), "machine-readable") {
		t.Errorf("a flag that k6 v1.0 has not: %v\n%s", err, calls)
	}
}

// The exit code is the highest of all runs, wherever it comes in the order.
func TestRunShEndsWithTheWorst(t *testing.T) {
	t.Parallel()
	api := newFakeAPI(t)
	api.extra["setnx"] = 1
	r := runSh(t, "race", fakeSettings(api, "VARIANTS=none,setnx,atomic")...)
	r.want(t, exitThresholds, "fs_oversold{variant:setnx} count==0 (count was 1)", "Exit code: 99")
	r.wantFiles(t, "race", 3)

	r = runSh(t, "race", fakeSettings(newFakeAPI(t), "VARIANTS=none,setnx,atomic", "STAND_IN_CRASHES_ON=setnx")...)
	r.want(t, 109, "race-setnx left no report, its exit code was 109", "Exit code: 109")
	r.wantFiles(t, "race", 2)

	r = runSh(t, "race", fakeSettings(newFakeAPI(t), "VARIANTS=atomic", "ADMIN_TOKEN=wrong")...)
	r.want(t, exitException, "status 401", "Exit code: 107")
}

// What is seen in the summary alone fails in join.js.
func TestRunShFailsForAContradiction(t *testing.T) {
	t.Parallel()
	api := newFakeAPI(t)
	api.misreport = func(audit map[string]any) { audit["accepted"], audit["remaining"], audit["persisted"] = 4, 1, 4 }
	// a script without the thresholds that would see it
	path := mutatedScript(t, "race.js", "t.must('fs_accepted', tags, accepted)", "t",
		"t.must('fs_persisted', tags, `count==${stock}`).must('fs_unsold', tags, 'count==0');", "")
	r := race(t, path, api.URL)
	r.want(t, exitOK, "Contradictions:", "5 answers were 201")
	execScript(t, "../join.js", "SCRIPT=race", "REPORTS="+filepath.Join(r.out, "race.json")).
		want(t, exitThresholds, "5 answers were 201")
	execScript(t, "../join.js", "SCRIPT=soak", "REPORTS="+filepath.Join(r.out, "race.json")).want(t, exitThresholds)
	execScript(t, "../join.js", "SCRIPT=race", "REPORTS=race.json").want(t, exitException, "absolute paths")
}

func TestRunShSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	runSh(t, "race", "ADMIN_TOKEN=x", "K6=/nonexistent/k6").want(t, 2, "brew install k6")
	runSh(t, "race", "ADMIN_TOKEN=x", "STAND_IN_FOR_K6=v0.57.0").want(t, 2, "for k6 v1 and v2")
}

// A wrong call ends with a line of what is wrong, what is allowed, and where more is said.
func TestRunShRefusesAWrongCall(t *testing.T) {
	t.Parallel()
	const scripts = "allowed are race, capacity, article-100x5m, soak, smoke"
	for _, c := range []struct {
		args string // separated by spaces
		env  string
		want []string
	}{
		{args: "rase", want: []string{`unknown script "rase"`, scripts}},
		{args: "../rase.js", want: []string{`unknown script "../rase.js"`, scripts}},
		{args: "join", want: []string{`unknown script "join"`, scripts}},
		{args: "--variants", want: []string{`unknown flag "--variants"`, "allowed are -h, --help"}},
		{args: "race smoke", want: []string{`unexpected argument "smoke"`, "allowed is one script"}},
		{env: "ADMIN_TOKEN=", want: []string{"ADMIN_TOKEN is not set", "allowed: the admin token"}},
		{env: "VARIANTS=none;reboot", want: []string{`VARIANTS is "none;reboot"`, "allowed: names of variants"}},
		{env: "VARIANTS=none,", want: []string{`VARIANTS is "none,"`, "separated by commas"}},
		{env: "OUT=/dev/null/x", want: []string{`OUT is "/dev/null/x"`, "allowed: a folder"}},
		{env: "OUT=" + t.TempDir() + "/a,b", want: []string{`/a,b"`, "allowed: a path without a comma"}},
	} {
		r := runSh(t, cmp.Or(c.args, "race"), "ADMIN_TOKEN=x", c.env)
		r.want(t, 2, c.want...)
		last, ours := strings.CutPrefix(lastLine(r.stderr), "run.sh: ")
		if !ours || !strings.HasSuffix(last, "; run.sh -h says more") || r.stdout != "" {
			t.Errorf("%q %s:\nstdout: %s\nstderr: %s", c.args, c.env, r.stdout, r.stderr)
		}
	}
	runSh(t, "-h").want(t, exitOK, "loadtest/run.sh [SCRIPT]", "ADMIN_TOKEN", "Exit code")
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return lines[len(lines)-1]
}

// The scripts that run.sh offers are the scripts that there are.
func TestRunShKnowsEveryScript(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../*.js")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".js")
		if name == "join" {
			continue
		}
		runSh(t, name, "ADMIN_TOKEN=x", "K6=/nonexistent/k6").want(t, 2, "there is no /nonexistent/k6")
	}
}
