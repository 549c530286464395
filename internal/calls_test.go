package internal_test

import (
	"bytes"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A wrong call of any program is answered by its process with one line, which
// says what is wrong, what is allowed and where there is more, and with exit
// code 2. The programs that are modules of their own have this test too.
func TestWrongCalls(t *testing.T) {
	dir := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", dir+"/", "../cmd/...", "./bench/ratios", "./servers/testrun").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, test := range []struct{ call, wrong, allowed, hint string }{
		{"flashsale sell", `"sell"`, "allowed are audit, bench", "flashsale -h"},
		{"flashsale --speed=1", "--speed", "allowed are --help", "flashsale -h"},
		{"flashsale demo --users=many", `"many" for "--users"`, "a whole number", "flashsale demo -h"},
		{"flashsale up --listen=8080", `--listen="8080"`, "host:port", "flashsale up -h"},
		{"flashsale bench --duration=2", `"2" for "--duration"`, "a duration such as", "flashsale bench -h"},
		{"flashsale bench articel", `"articel"`, "the command article", "flashsale bench -h"},
		{"flashsale bench article --runs=0", "--runs: 0", "1 to 100", "flashsale bench article -h"},
		{"flashsale preload", "is missing", "FILE.csv (or --from-db)", "flashsale preload -h"},
		{"flashsale audit a b", `"b"`, "allowed are SALE", "flashsale audit -h"},
		{"flashsale migrate now", `"now"`, "flags alone", "flashsale migrate -h"},
		{"flashsale doctor --redis=a:1,b --prefix=A_B", `--redis=`, "host:port", "flashsale doctor -h"}, // two faults, one line
		{"api --speed=1", "-speed", "--listen", "api -h"},
		{"api now", `"now"`, "flags only", "api -h"},
		{"api --listen=8080 --lock-ttl=1", `--lock-ttl="1"`, "host:port", "api -h"}, // two faults, one line
		{"syncer --listen=:1", "-listen", "--kafka-brokers", "syncer -h"},
		{"syncer --log-level=loud", `"loud"`, "debug", "syncer -h"},
		{"ratios -speed", "-speed", "allowed are -json", "ratios -h"},
		{"ratios now", `"now"`, "allowed are -json", "ratios -h"},
		{"ratios -only=atomic,foo", `"foo"`, "allowed are ledger, gin", "ratios -h"},
		{"ratios -profile=x", "-profile", "only with -only", "ratios -h"},
		{"testrun", "COMMAND is missing", "-deps", "testrun -h"},
		{"testrun -speed", `"-speed"`, "COMMAND", "testrun -h"},
	} {
		t.Run(test.call, func(t *testing.T) {
			words := strings.Fields(test.call)
			cmd := exec.CommandContext(t.Context(), filepath.Join(dir, words[0]), words[1:]...)
			cmd.Env = []string{"PATH=/nonexistent"}
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			var exit *exec.ExitError
			if err := cmd.Run(); !errors.As(err, &exit) || exit.ExitCode() != 2 {
				t.Errorf("%v, want exit code 2", err)
			}
			line := stderr.String()
			if stdout.Len() > 0 || strings.Count(line, "\n") != 1 || !strings.HasPrefix(line, words[0]+": ") {
				t.Errorf("stdout %q, stderr %q: want one line", &stdout, line)
			}
			for _, part := range []string{test.wrong, test.allowed, test.hint} {
				if !strings.Contains(line, part) {
					t.Errorf("no %q in %q", part, line)
				}
			}
		})
	}
}
