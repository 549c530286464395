//go:build unix

package child

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestKillEndsTheWholeGroup(t *testing.T) {
	c, grandchild := family(t, "")
	c.Kill()
	waitGone(t, grandchild)
	c.Kill() // of the dead: nothing
	if err := c.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestStopAsksAndThenKills(t *testing.T) {
	c, _ := family(t, "")
	if err := c.Stop(t.Context()); err != nil {
		t.Errorf("a child that obeys: %v", err)
	}
	deaf, grandchild := family(t, "trap '' TERM; ")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := deaf.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a child that does not: %v", err)
	}
	waitGone(t, grandchild)
}

func TestErrSaysHowItEnded(t *testing.T) {
	c, err := Start(exec.Command("sh", "-c", "exit 7"))
	if err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := c.Err(); !errors.As(err, &exit) || exit.ExitCode() != 7 {
		t.Error(err)
	}
	if _, err := Start(exec.Command("/does/not/exist")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := Run(ctx, exec.Command("sleep", "60")); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

// The parent of this test's child is a process of its own, which is killed.
func TestChildrenDieWithTheirParent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has a death signal")
	}
	parent := exec.Command(os.Args[0], "-test.run=^TestHasAChildAndHangs$", "-test.v")
	parent.Env = append(os.Environ(), "CHILD_HANG=1")
	pipe, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	pid := pidLine(t, bufio.NewScanner(pipe))
	if err := syscall.Kill(pid, 0); err != nil {
		t.Error("the child ended before its parent:", err)
	}
	parent.Process.Kill()
	parent.Wait()
	waitGone(t, pid)
}

func TestHasAChildAndHangs(t *testing.T) {
	if os.Getenv("CHILD_HANG") == "" {
		t.Skip("for TestChildrenDieWithTheirParent")
	}
	c, err := Start(exec.Command("sleep", "60"))
	if err != nil {
		t.Fatal(err)
	}
	os.Stdout.WriteString("\npid " + strconv.Itoa(c.Pid()) + "\n")
	<-c.Done()
}

// family is a shell with a child of its own.
func family(t *testing.T, prologue string) (c *Child, grandchild int) {
	t.Helper()
	cmd := exec.Command("sh", "-c", prologue+"sleep 60 & echo pid $!; wait; wait")
	pipe, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	cmd.Stdout = writer
	c, err = Start(cmd)
	writer.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Kill)
	return c, pidLine(t, bufio.NewScanner(pipe))
}

func pidLine(t *testing.T, lines *bufio.Scanner) int {
	t.Helper()
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), "pid "); ok {
			pid, err := strconv.Atoi(text)
			if err != nil {
				t.Fatal(err)
			}
			return pid
		}
	}
	t.Fatal("no process ID")
	return 0
}

// waitGone waits until a process that is not ours to wait for has ended; a
// zombie, which nobody may have collected yet, has.
func waitGone(t *testing.T, pid int) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); alive(pid); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("process %d is still there", pid)
		}
	}
}

func alive(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return syscall.Kill(pid, 0) == nil && runtime.GOOS != "linux"
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(state, "Z")
}
