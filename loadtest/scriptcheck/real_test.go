package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"
)

// Every script against flashsale itself: on its embedded stand-ins, over its
// real HTTP interface. Small: a stand-in for Redis takes few scripts a second.
func TestAgainstFlashsale(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and starts flashsale")
	}
	t.Parallel()
	url, token := startFlashsale(t)
	settings := func(more ...string) []string {
		return append([]string{"BASE_URL=" + url, "ADMIN_TOKEN=" + token, "AUDIT_WAIT_S=30"}, more...)
	}
	raceSettings := settings("USERS=24", "STOCK=8", "LEAD_MS=300", "RETRY_MS=20000", "TIMEOUT_MS=20000")

	t.Run("group", func(t *testing.T) { // ends when all of its parts have
		for _, variant := range []string{"none", "setnx", "watchdog", "atomic"} {
			t.Run("race/"+variant, func(t *testing.T) {
				t.Parallel()
				r := execScript(t, raceScript, append(raceSettings, "VARIANTS="+variant)...)
				r.want(t, exitOK, "Every threshold holds", "of 8")
				r.wantFiles(t, "race", 1)
				for _, row := range r.report.Rows {
					locked := row.Variant == "setnx" || row.Variant == "watchdog"
					if row.PerS == nil || *row.PerS <= 0 || locked && (row.WaitP99 == nil || *row.WaitP99 <= 0) {
						t.Errorf("%s: accepted/s %v, lock wait %v", row.Variant, deref(row.PerS), deref(row.WaitP99))
					}
				}
			})
		}
		t.Run("race/none declared safe", func(t *testing.T) {
			t.Parallel()
			execScript(t, raceScript, append(raceSettings, "VARIANTS=none", "UNSAFE=")...).
				want(t, exitThresholds, "fs_oversold{variant:none} count==0")
		})
		t.Run("race/wrong token", func(t *testing.T) {
			t.Parallel()
			execScript(t, raceScript, append(raceSettings, "ADMIN_TOKEN=not-the-token")...).want(t, exitException, "401")
		})
		t.Run("race/unknown variant", func(t *testing.T) {
			t.Parallel()
			execScript(t, raceScript, append(raceSettings, "VARIANTS=redisson")...).want(t, exitException, "422", "watchdog-combining")
		})

		for _, variant := range []string{"watchdog", "atomic"} {
			t.Run("smoke/"+variant, func(t *testing.T) {
				t.Parallel()
				r := execScript(t, "../smoke.js", settings("VARIANT="+variant, "BUSY_WORK_MS=6000")...)
				r.want(t, exitOK, "Every threshold holds", "423 busy")
				r.wantFiles(t, "smoke", 29)
			})
		}

		capacity := settings("RATES=20,60", "DURATION=1500ms", "WARM_UP=1s", "PAUSE=0s", "VUS=30", "TIMEOUT_MS=5000")
		t.Run("capacity", func(t *testing.T) {
			t.Parallel()
			r := execScript(t, "../capacity.js", append(capacity, "VARIANT=atomic", "MAX_P99_MS=30000")...)
			r.want(t, exitOK, "Every threshold holds", "dropped iterations")
			r.wantFiles(t, "capacity", 2)
			for i, row := range r.report.Rows {
				if deref(row.Offered) != []int{20, 60}[i] || deref(row.Planned) != []int{30, 90}[i] || row.Dropped == nil || row.P99 == nil {
					t.Errorf("row %d: offered %v, planned %v, dropped %v, p99 %v", i, deref(row.Offered), deref(row.Planned), deref(row.Dropped), deref(row.P99))
				}
			}
		})

		// what is tested is the script; how fast this machine is just now is not
		lenient := []string{"MAX_RESPONSE_MS=20000", "MAX_WAIT_P99_MS=20000", "MAX_HOLD_P99_MS=20000"}
		article := settings("DURATION=3s", "WORK_MIN_MS=20", "WORK_MAX_MS=60", "TIMEOUT_MS=20000")
		t.Run("article/feasible", func(t *testing.T) {
			t.Parallel()
			r := execScript(t, "../article-100x5m.js", append(article, "USERS=6", "SKUS=3", lenient[0], lenient[1])...)
			r.want(t, exitOK, "Every threshold holds", "The run can pass.")
			r.wantFiles(t, "article-100x5m", 1)
			if row := r.report.Rows[0]; row.WaitP99 == nil || *row.WaitP99 <= 0 {
				t.Errorf("lock wait P99 %v", deref(row.WaitP99))
			}
		})
		t.Run("article/one item", func(t *testing.T) {
			t.Parallel()
			r := execScript(t, "../article-100x5m.js", append(article, "USERS=24", "SKUS=1", "WORK_MIN_MS=100", "WORK_MAX_MS=200")...)
			r.want(t, exitThresholds, "the run cannot pass with any lock", "serves 6.7 purchases/s at most",
				"fs_purchase_ms{variant:watchdog} max<1000", "fs_lock_wait_ms{variant:watchdog} p(99)<500", "fs_failed_acquisitions{variant:watchdog} rate<0.01")
			r.wantFiles(t, "article-100x5m", 1)
		})
		t.Run("article/none", func(t *testing.T) {
			t.Parallel()
			execScript(t, "../article-100x5m.js", append(article, "VARIANT=none", "USERS=6", "SKUS=1", lenient[0])...).want(t, exitOK, "Every threshold holds")
		})
		t.Run("article/none declared safe", func(t *testing.T) {
			t.Parallel()
			execScript(t, "../article-100x5m.js", append(article, "VARIANT=none", "UNSAFE=", "USERS=6", "SKUS=1")...).
				want(t, exitThresholds, "fs_lost_updates{variant:none} count==0", "fs_acquisitions{variant:none} count>=6 (count was 0)")
		})

		t.Run("soak", func(t *testing.T) {
			t.Parallel()
			r := execScript(t, "../soak.js", settings("VARIANT=atomic", "DURATION=6s", "USERS=4", "PAUSE_MS=50", "MAX_P99_MS=20000", "TIMEOUT_MS=20000")...)
			r.want(t, exitOK, "Every threshold holds", "P99 of the last quarter to the first:")
			r.wantFiles(t, "soak", 3)
		})

		t.Run("run.sh", func(t *testing.T) {
			t.Parallel()
			r := runSh(t, "race", append(raceSettings, "VARIANTS=none,watchdog,atomic")...)
			r.want(t, exitOK, "8 of 8", "Every threshold holds", "Exit code: 0")
			r.wantFiles(t, "race", 3)
		})

		for name, c := range sabotagedAnswers {
			t.Run("sabotage/"+name, func(t *testing.T) {
				t.Parallel()
				env := settings(append(c.env, "BASE_URL="+c.proxy(t, url))...)
				execScript(t, "../"+c.script, env...).want(t, exitThresholds, c.want)
			})
		}
	})
}

// startFlashsale builds and runs "flashsale up" until the test ends.
func startFlashsale(t *testing.T) (url, token string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "flashsale")
	build := exec.Command("go", "build", "-C", "../..", "-o", program, "./cmd/flashsale")
	build.Env = append(os.Environ(), "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}

	up := exec.CommandContext(t.Context(), program, "up", "--listen", "127.0.0.1:0")
	up.Dir = "../.." // where the catalogue is
	up.Cancel = func() error { return up.Process.Signal(os.Interrupt) }
	up.WaitDelay = 20 * time.Second
	up.Stderr = os.Stderr
	stdout, err := up.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	found, ended := make(chan []string, 1), make(chan error, 1)
	go func() {
		found <- serving(stdout)
		io.Copy(io.Discard, stdout)
		ended <- up.Wait()
	}()
	t.Cleanup(func() { // by now the context is cancelled
		if err := <-ended; err != nil && up.ProcessState.ExitCode() != 0 {
			t.Errorf("flashsale up: %v", err)
		}
	})
	select {
	case where := <-found:
		if where == nil {
			t.Fatal("flashsale up ended without saying where it serves")
		}
		return where[1], where[2]
	case <-time.After(time.Minute):
		t.Fatal("flashsale up does not say where it serves")
	}
	return "", ""
}

var servingLine = regexp.MustCompile(`^Serving .* at (http://\S+) .*Admin token: (\S+)`)

// serving reads until the line that names the URL and the token, nil if there is none.
func serving(stdout io.Reader) []string {
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		if found := servingLine.FindStringSubmatch(lines.Text()); found != nil {
			return found
		}
		fmt.Println("flashsale up:", lines.Text())
	}
	return nil
}
