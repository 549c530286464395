// Command api serves the HTTP interface and relays what was sold from Redis to
// Kafka. `api --help` lists its settings.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"flashsale/internal/app"
)

func main() {
	app.RelaxGC()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	err := run(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr)
	os.Exit(app.Report(app.APIProgram, err, os.Stderr))
}

func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) error {
	cfg, warnings, err := app.ParseConfig(app.APIProgram, args, environ, stdout)
	if errors.Is(err, app.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	logger := cfg.NewLogger(stderr)
	for _, w := range warnings {
		logger.Warn(w)
	}
	made := cfg.AdminToken == ""
	if made {
		cfg.AdminToken = rand.Text()
	}
	api, err := app.NewAPI(ctx, cfg, logger)
	if err != nil {
		return err
	}
	if made { // not before there is an API that takes it
		fmt.Fprintln(stdout, "admin token (none was set):", cfg.AdminToken)
	}
	return api.Run(ctx)
}
