// Scriptcheck runs a k6 script against an API on this machine, as far as the
// scripts in this repository need it, so that a fault in one is found by
// go test. It is not k6: it has k6's JavaScript engine (sobek) and its own,
// small version of k6's modules, life cycle, thresholds and exit codes. What it
// does not know it refuses; it never skips. Its figures are no load test's.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// Exit codes: k6's, for the cases that scriptcheck has.
const (
	exitOK              = 0
	exitUsage           = 2 // not k6's: scriptcheck itself was called wrongly
	exitThresholds      = 99
	exitSetupTimeout    = 100
	exitTeardownTimeout = 101
	exitInvalid         = 104 // options that are wrong, unknown here or out of bounds
	exitInterrupted     = 105
	exitException       = 107 // in init code, setup, teardown
	exitAborted         = 108 // by the script: exec.test.abort()
)

// The bounds that flags may lower but not lift.
const (
	maxVUs      = 1000
	maxDuration = 10 * time.Minute
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cfg, err := parseFlags(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return exitOK
	}
	if err != nil {
		fmt.Fprintf(stderr, "scriptcheck: %v; scriptcheck -h says more\n", err)
		return exitUsage
	}
	cfg.stdout, cfg.stderr = stdout, &lockedWriter{w: stderr}
	return execute(ctx, cfg)
}

// config is what the command line says.
type config struct {
	script          string
	env             map[string]string
	maxVUs          int
	maxDuration     time.Duration
	machineReadable bool // the shape of handleSummary's data
	stdout, stderr  io.Writer
}

func parseFlags(args []string, stderr io.Writer) (config, error) {
	cfg := config{env: map[string]string{}}
	fs := flag.NewFlagSet("scriptcheck", flag.ContinueOnError)
	fs.SetOutput(io.Discard) // a wrong flag is no reason for a page of help
	help := func() {
		fs.SetOutput(stderr)
		fmt.Fprintln(stderr, "usage: scriptcheck [flags] SCRIPT.js\n\nRuns a k6 script against loopback addresses. This is not k6.")
		fs.PrintDefaults()
	}
	fs.Func("e", "`NAME=value` for the script's __ENV; repeat it for more", func(s string) error {
		name, value, ok := strings.Cut(s, "=")
		if !ok || name == "" {
			return errors.New("want NAME=value")
		}
		cfg.env[name] = value
		return nil
	})
	system := fs.Bool("include-system-env-vars", false, "put the environment into __ENV, as k6 run does by default; -e wins")
	fs.IntVar(&cfg.maxVUs, "max-vus", 500, "refuse scripts that need more VUs at once")
	fs.DurationVar(&cfg.maxDuration, "max-duration", 5*time.Minute, "refuse scenarios that may take longer, stop everything after it")
	fs.BoolVar(&cfg.machineReadable, "new-machine-readable-summary", false, "give handleSummary the data in k6's newer shape")
	switch err := fs.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		help()
		return cfg, err
	case err != nil:
		return cfg, fmt.Errorf("%w: allowed are -e, -include-system-env-vars, -max-vus, -max-duration, -new-machine-readable-summary", err)
	}
	if fs.NArg() != 1 {
		return cfg, fmt.Errorf("%d scripts: allowed is one, after the flags", fs.NArg())
	}
	if cfg.maxVUs < 1 || cfg.maxVUs > maxVUs {
		return cfg, fmt.Errorf("-max-vus is %d; allowed: 1 to %d", cfg.maxVUs, maxVUs)
	}
	if cfg.maxDuration <= 0 || cfg.maxDuration > maxDuration {
		return cfg, fmt.Errorf("-max-duration is %v; allowed: above 0, up to %v", cfg.maxDuration, maxDuration)
	}
	if *system {
		for _, pair := range os.Environ() {
			name, value, _ := strings.Cut(pair, "=")
			if _, given := cfg.env[name]; !given {
				cfg.env[name] = value
			}
		}
	}
	cfg.script = fs.Arg(0)
	return cfg, nil
}
