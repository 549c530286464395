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

// The race against flashsale itself: on its embedded stand-ins, over its real
// HTTP interface.
func TestRaceAgainstFlashsale(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and starts flashsale")
	}
	t.Parallel()
	url, token := startFlashsale(t)
	// few users: setnx polls, and a stand-in for Redis takes few scripts a second
	settings := []string{"ADMIN_TOKEN=" + token, "USERS=24", "STOCK=8", "LEAD_MS=300", "RETRY_MS=4000", "TIMEOUT_MS=5000"}

	r := race(t, raceScript, url, append(settings, "VARIANTS=none,setnx,watchdog,atomic")...)
	r.want(t, exitOK, "Every threshold holds.", "8 of 8")
	for _, row := range r.report.Rows {
		locked := row.Variant == "setnx" || row.Variant == "watchdog"
		if row.PerS == nil || *row.PerS <= 0 || locked && (row.WaitP99 == nil || *row.WaitP99 <= 0) {
			t.Errorf("%s: accepted/s %v, lock wait %v", row.Variant, deref(row.PerS), deref(row.WaitP99))
		}
	}
	t.Log(r.stdout)

	race(t, raceScript, url, append(settings, "VARIANTS=none", "UNSAFE=")...).
		want(t, exitThresholds, "fs_oversold{variant:none} count==0")
	race(t, raceScript, url, append(settings, "ADMIN_TOKEN=not-the-token")...).
		want(t, exitException, "401")
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
