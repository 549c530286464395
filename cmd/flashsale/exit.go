package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
)

// Exit codes.
const (
	exitOK          = 0
	exitFault       = 1 // it ran, and something is wrong
	exitUsage       = 2 // it did not run: wrong flags or arguments, or a file that can't be read
	exitInterrupted = 130
	exitUnread      = 141 // nobody reads stdout any more, as in "flashsale demo | head"; what SIGPIPE would have made of it
)

// usageError is about how the program was called.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usage(format string, values ...any) error {
	return usageError{fmt.Errorf(format, values...)}
}

// stdoutError is a result that could not be written.
type stdoutError struct{ error }

func (e stdoutError) Unwrap() error { return e.error }

// faultsError is what a check found; there is nothing wrong with the check.
type faultsError []string

func (e faultsError) Error() string { return strings.Join(e, "\n") }

// faults is nil when there are none.
func faults(list []string) error {
	if len(list) == 0 {
		return nil
	}
	return faultsError(list)
}

// report says what went wrong and returns the exit code.
func report(err error, stderr io.Writer) int {
	var wrongUsage usageError
	var unwritten stdoutError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &wrongUsage):
		// One line, however many settings are wrong.
		fmt.Fprintf(stderr, "flashsale: %s\n", strings.ReplaceAll(err.Error(), "\n", "; "))
		return exitUsage
	case errors.As(err, &unwritten) && errors.Is(unwritten, syscall.EPIPE):
		return exitUnread // who stopped reading knows
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(stderr, "flashsale: interrupted")
		return exitInterrupted
	default:
		fmt.Fprintf(stderr, "flashsale: %v\n", err)
		return exitFault
	}
}
