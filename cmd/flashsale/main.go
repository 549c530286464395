// Command flashsale is the tool for people: it shows a flash sale end to end,
// and prepares, checks and mends an installation.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	// SIGHUP comes when the terminal is closed.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
	// Without this, a write that nobody reads would end the process on the spot.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	os.Exit(report(err, os.Stderr))
}

// run is the program without its process: results go to stdout, what is said on
// the way to stderr. When stdout can't be written, everything ends as after
// Ctrl-C.
func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p := &program{args: args, getenv: getenv, stdout: ending{stdout, cancel}, stderr: stderr}
	root := p.root()
	root.SetArgs(args)
	called, err := root.ExecuteContextC(ctx)
	var wrong usageError
	if errors.As(err, &wrong) {
		return usageError{fmt.Errorf("%w; %s -h says more", err, called.CommandPath())}
	}
	var unwritten stdoutError
	if errors.As(context.Cause(ctx), &unwritten) && (err == nil || errors.Is(err, context.Canceled)) {
		return unwritten
	}
	return err
}

// ending is stdout, whose first failure ends the program.
type ending struct {
	io.Writer
	end context.CancelCauseFunc
}

func (w ending) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	if err != nil {
		err = stdoutError{fmt.Errorf("stdout: %w", err)}
		w.end(err)
	}
	return n, err
}
