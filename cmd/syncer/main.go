// Command syncer settles what was sold: it moves events from Kafka into MySQL.
// `syncer --help` lists its settings.
package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"flashsale/internal/app"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	err := run(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr)
	os.Exit(app.Report(app.SyncerProgram, err, os.Stderr))
}

func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) error {
	cfg, warnings, err := app.ParseConfig(app.SyncerProgram, args, environ, stdout)
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
	syncer, err := app.NewSyncer(ctx, cfg, logger)
	if err != nil {
		return err
	}
	return syncer.Run(ctx)
}
