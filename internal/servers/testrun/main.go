// Program testrun runs a test command, as in
//
//	testrun go test -race ./...
//
// with a real Redis, MariaDB, Kafka, etcd and ZooKeeper of its own, that it
// starts on free loopback ports in a temporary folder and stops again, and with
// promtool for those tests that call it. What is not installed it
// installs when it is run by root on a system with apt-get; otherwise it says
// how, and the tests do with stand-ins. Its last lines say which servers were
// real, and how many tests ran on a stand-in. Its exit code is the command's.
//
// testrun -deps installs what is missing and ends. After -stderr as the first
// argument testrun itself writes to stderr alone, and stdout is the command's.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"flashsale/internal/servers/child"
	"flashsale/internal/servers/servertest"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(args) == 1 && args[0] == "-deps" {
		if err := installAll(ctx, stdout); err != nil {
			fmt.Fprintln(stderr, "testrun:", err)
			return 1
		}
		return 0
	}
	said := stdout // where testrun's own words go
	if len(args) > 0 && args[0] == "-stderr" {
		args, said = args[1:], stderr
	}
	const usage = "testrun [-stderr] COMMAND [ARGUMENT]..., or testrun -deps"
	switch {
	case len(args) == 0:
		fmt.Fprintln(stderr, "testrun: COMMAND is missing: allowed is "+usage+"; testrun -h says more")
		return 2
	case args[0] == "-h" || args[0] == "--help":
		fmt.Fprintln(stdout, usage+"\n\nRuns the command with real servers of its own, or -deps: installs what is missing for that.\nWith -stderr testrun itself writes to stderr alone.")
		return 0
	case strings.HasPrefix(args[0], "-"):
		fmt.Fprintf(stderr, "testrun: unknown flag %q: allowed is %s; testrun -h says more\n", args[0], usage)
		return 2
	}
	dir, err := os.MkdirTemp("", "flashsale-")
	if err != nil {
		fmt.Fprintln(stderr, "testrun:", err)
		return 1
	}
	defer os.RemoveAll(dir)

	stores := storesOfARun()
	defer takeDown(stores)
	bringUp(ctx, dir, stores, said)
	tally := filepath.Join(dir, "tally")
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.Env = append(os.Environ(), servertest.EnvTally+"="+tally)
	for _, s := range stores {
		if s.env != "" {
			cmd.Env = append(cmd.Env, s.env+"="+s.value())
		}
	}
	code := execute(ctx, cmd, stderr)
	summary(said, stores, tally)
	return code
}

// execute runs the command and passes SIGINT and SIGTERM on as an interrupt. A
// command that then takes too long to end is killed.
func execute(ctx context.Context, cmd *exec.Cmd, stderr io.Writer) int {
	if ctx.Err() != nil {
		return 130
	}
	tests, err := child.Start(cmd)
	if err != nil {
		fmt.Fprintln(stderr, "testrun:", err)
		return 127
	}
	select {
	case <-tests.Done():
	case <-ctx.Done():
		tests.Signal(os.Interrupt)
		select {
		case <-tests.Done():
		case <-time.After(10 * time.Second):
		}
		tests.Kill() // and what else is in its process group
		return 130
	}
	var exit *exec.ExitError
	switch err := tests.Err(); {
	case err == nil:
		return 0
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		return exit.ExitCode()
	default:
		fmt.Fprintln(stderr, "testrun:", err)
		return 1
	}
}

// takeDown ends all servers at once; their data go with the folder.
func takeDown(stores []*store) {
	var all sync.WaitGroup
	for _, s := range stores {
		if s.server != nil {
			all.Go(s.server.Kill)
		}
	}
	all.Wait()
}
