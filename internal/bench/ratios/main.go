//go:build unix

// Program ratios measures how fast sales are on this machine, as ratios of
// things measured in turn in one run: what the request path sells in each
// variant, on one hot item with 64 clients, and how the ledger keeps up.
//
// It takes its servers from the environment that the program testrun makes:
//
//	make bench-ratios            a table
//	make bench-ratios JSON=1     one JSON object, alone on stdout
//
// The API and the syncer are processes of their own, built from cmd/api and
// cmd/syncer; requests go to them over HTTP. "Gin without back end" is a process
// too, see gin.go. It fails when units were oversold or lost, not when a ratio
// misses its target. When a part of it fails, or it is interrupted, it prints what
// was measured before.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"flashsale/internal/app"
	"flashsale/internal/servers/servertest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	var wrong wrongCall
	switch {
	case err == nil:
	case errors.As(err, &wrong):
		fmt.Fprintf(os.Stderr, "ratios: %v; ratios -h says more\n", err)
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "ratios:", err)
		os.Exit(1)
	}
}

// wrongCall is what is wrong with the flags: nothing was measured.
type wrongCall struct{ error }

func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("ratios", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // a wrong flag is no reason for a page of help
	asJSON := flags.Bool("json", false, "print one JSON object")
	only := flags.String("only", "", "measure these alone: paths of the request, ledger; as in gin,atomic,ledger")
	profile := flags.String("profile", "", "with -only: a folder for a CPU profile of the API on each path, and of the syncer")
	as := flags.String("as", "", "what a child process is: gin or single")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(stdout, "ratios measures how fast sales are on this machine; make bench-ratios starts the servers that it needs.")
		flags.SetOutput(stdout)
		flags.PrintDefaults()
		return nil
	case err != nil:
		return wrongCall{fmt.Errorf("%w: allowed are -json, -only, -profile", err)}
	case flags.NArg() > 0:
		return wrongCall{fmt.Errorf("unexpected argument %q: allowed are -json, -only, -profile", flags.Arg(0))}
	case *only == "" && *profile != "":
		return wrongCall{errors.New("-profile: only with -only")}
	case *as != "" && *as != "gin" && *as != "single":
		return wrongCall{fmt.Errorf("-as: %q: allowed are gin, single", *as)}
	}
	known := []string{"ledger"}
	for _, p := range paths {
		known = append(known, p.name)
	}
	for name := range strings.SplitSeq(*only, ",") {
		if *only != "" && !slices.Contains(known, name) {
			return wrongCall{fmt.Errorf("-only: %q: allowed are %s", name, strings.Join(known, ", "))}
		}
	}
	switch *as {
	case "gin":
		app.RelaxGC() // as cmd/api does
		return serveGin(ctx, stderr)
	case "single":
		app.RelaxGC()
		return serveSingle(ctx, stderr)
	}
	cfg := app.Config{
		RedisAddrs: []string{getenv(servertest.EnvRedis)}, KafkaBrokers: []string{getenv(servertest.EnvKafka)}, MySQLDSN: getenv(servertest.EnvSQL),
	}
	for name, value := range map[string]string{"Redis": cfg.RedisAddrs[0], "Kafka": cfg.KafkaBrokers[0], "MySQL": cfg.MySQLDSN} {
		if value == "" || value == servertest.Embedded {
			return errors.New("this needs a real " + name + ": make bench-ratios starts them")
		}
	}
	size := fullSize
	if *only != "" {
		size.only, size.profile = strings.Split(*only, ","), *profile
	}
	result, err := measure(ctx, cfg, size, stderr)
	if result == nil {
		return err
	}
	if *asJSON {
		return errors.Join(err, json.NewEncoder(stdout).Encode(result))
	}
	result.print(stdout)
	return err
}
