package main

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"
)

// asProgram makes the test's binary the program, so that signals have a process.
const asProgram = "FLASHSALE_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	switch os.Getenv(asProgram) {
	case "":
		os.Exit(m.Run())
	case "hangs": // its end does, until the second signal
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		context.AfterFunc(ctx, stop)
		signal.Notify(make(chan os.Signal, 1), os.Interrupt) // none ends it unheard
		dir, err := os.MkdirTemp("", "flashsale-demo-")
		if err != nil {
			panic(err)
		}
		removeWhenHurried(ctx, dir)
		os.Stdout.WriteString("Serving\n")
		for range time.Tick(time.Millisecond) { // the second signal follows the first one, until it is heard
			if ctx.Err() != nil {
				_ = syscall.Kill(os.Getpid(), syscall.SIGINT)
			}
		}
	default:
		main()
	}
}

// Whatever ends the program, its folder is gone afterwards.
func TestNothingIsLeftBehind(t *testing.T) {
	for name, c := range map[string]struct {
		as     string
		listen string
		signal syscall.Signal // 0: it ends by itself
	}{
		"Ctrl-C":              {"up", "127.0.0.1:0", syscall.SIGINT},
		"SIGTERM":             {"up", "127.0.0.1:0", syscall.SIGTERM},
		"the terminal closed": {"up", "127.0.0.1:0", syscall.SIGHUP},
		"no start":            {"up", "203.0.113.1:80", 0},
		"hurried":             {"hangs", "", syscall.SIGINT},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			program := exec.CommandContext(t.Context(), os.Args[0], "up", "--listen", c.listen)
			program.Env = append(os.Environ(), asProgram+"="+c.as, "TMPDIR="+dir)
			out, err := program.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := program.Start(); err != nil {
				t.Fatal(err)
			}
			served := false
			for lines := bufio.NewScanner(out); lines.Scan(); {
				if c.signal == 0 || served || !strings.HasPrefix(lines.Text(), "Serving") {
					continue
				}
				served = true
				left, err := os.ReadDir(dir)
				if err != nil || len(left) != 1 {
					t.Errorf("while it runs: %v, %v", left, err)
				}
				if err := program.Process.Signal(c.signal); err != nil {
					t.Error(err)
				}
			}
			_ = program.Wait()
			if served != (c.signal != 0) {
				t.Errorf("served: %v", served)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("left: %v, %v", left, err)
			}
		})
	}
}
