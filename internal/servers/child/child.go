// Package child runs processes that must not outlive this one: when this
// process ends, however it ends, its children end too (on Linux even after a
// SIGKILL), and with them the whole process group that each leads.
package child

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
)

// Child is a running or ended process. Its methods are safe for concurrent use.
type Child struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error // what Wait said, readable once done is closed
}

// Start starts cmd, which must not be used by the caller afterwards.
func Start(cmd *exec.Cmd) (*Child, error) {
	own(cmd)
	c := &Child{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		// Linux sends the parent's death signal when the *thread* that made
		// the child ends. This goroutine keeps its thread as long as the child lives.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		c.err = cmd.Wait()
		close(c.done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("child: %w", err)
	}
	return c, nil
}

// Run starts cmd and waits for its end. When ctx ends first, the child is killed.
func Run(ctx context.Context, cmd *exec.Cmd) error {
	c, err := Start(cmd)
	if err != nil {
		return err
	}
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
		c.Kill()
		return fmt.Errorf("child: %s: %w", cmd.Path, context.Cause(ctx))
	}
}

// Pid is the process ID; its process group has the same.
func (c *Child) Pid() int { return c.cmd.Process.Pid }

// Done is closed when the process has ended.
func (c *Child) Done() <-chan struct{} { return c.done }

// Err waits for the end and says how it was: nil, or an *exec.ExitError.
func (c *Child) Err() error {
	<-c.done
	return c.err
}

// Signal sends sig to the child's whole process group. A child that has ended
// gets nothing, and that is no error.
func (c *Child) Signal(sig os.Signal) error {
	select {
	case <-c.done:
		return nil
	default:
		return signal(c.cmd.Process, sig)
	}
}

// Kill ends the child without asking (SIGKILL) and waits until it is gone.
func (c *Child) Kill() {
	c.Signal(os.Kill)
	<-c.done
}

// Stop asks the child to end (SIGTERM) and waits until it did. When ctx ends
// first, the child is killed, and the error says so.
func (c *Child) Stop(ctx context.Context) error {
	if err := c.Signal(terminate); err != nil {
		return fmt.Errorf("child: %w", err)
	}
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		c.Kill()
		return fmt.Errorf("child: %s had to be killed: %w", c.cmd.Path, context.Cause(ctx))
	}
}
