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
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	os.Exit(report(err, os.Stderr))
}

// run is the program without its process: results go to stdout, what is said on
// the way to stderr.
func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) error {
	p := &program{args: args, getenv: getenv, stdout: stdout, stderr: stderr}
	root := p.root()
	root.SetArgs(args)
	called, err := root.ExecuteContextC(ctx)
	var wrong usageError
	if errors.As(err, &wrong) {
		return usageError{fmt.Errorf("%w; %s -h says more", err, called.CommandPath())}
	}
	return err
}
