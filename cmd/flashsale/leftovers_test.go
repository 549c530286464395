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

// reader stops reading at a line.
type reader struct {
	output
	until string
	gone  bool
	err   error // for who writes on
}

func (r *reader) Write(p []byte) (int, error) {
	if r.gone = r.gone || strings.Contains(r.String()+string(p), r.until); r.gone {
		return 0, r.err
	}
	return r.output.Write(p)
}

// What nobody reads ends as if Ctrl-C had been pressed.
func TestNothingIsLeftBehindWhenStdoutFails(t *testing.T) {
	for name, c := range map[string]struct {
		args  []string
		until string
		err   error
		code  int
		says  string
	}{
		"up | head":           {[]string{"up", "--listen", "127.0.0.1:0"}, "\nkafka", syscall.EPIPE, exitUnread, ""},
		"up, while serving":   {[]string{"up", "--listen", "127.0.0.1:0"}, "\ncurl", syscall.EPIPE, exitUnread, ""},
		"demo | head":         {small("--duration", "1h", "--variants", "atomic"), "\nkafka", syscall.EPIPE, exitUnread, ""},
		"demo, at its end":    {small("--once", "--variants", "atomic"), "\nRace: ", syscall.EPIPE, exitUnread, ""},
		"a disk that is full": {[]string{"up", "--listen", "127.0.0.1:0"}, "\nkafka", syscall.ENOSPC, exitFault, "flashsale: stdout: no space left on device\n"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("TMPDIR", dir)
			stdout, stderr, said := &reader{until: c.until, err: c.err}, new(output), new(output)
			err := run(t.Context(), c.args, func(string) string { return "" }, stdout, stderr)
			if code := report(err, said); code != c.code || said.String() != c.says {
				t.Errorf("exit code %d, %q: %v\n%s", code, said.String(), err, stderr.String())
			}
			if !strings.Contains(stdout.String(), "redis") {
				t.Errorf("it ended before its folder was there: %q", stdout.String())
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("left: %v, %v", left, err)
			}
		})
	}
}

// The process gets SIGPIPE for it, which must not be its end.
func TestSIGPIPEDoesNotEndTheProcess(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	read.Close()
	defer write.Close()
	program := exec.CommandContext(t.Context(), os.Args[0], "up", "--listen", "127.0.0.1:0")
	program.Env = append(os.Environ(), asProgram+"=up", "TMPDIR="+t.TempDir())
	program.Stdout = write
	_ = program.Run()
	if state := program.ProcessState; state == nil || state.ExitCode() != exitUnread {
		t.Errorf("ended with %v", state)
	}
}
