package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"flashsale/internal/kafkastock"
	"flashsale/internal/sqlstock"
)

// startupTimeout bounds what a start waits for servers that hang.
const startupTimeout = 3 * time.Second

// dependency is a server that a program looks at when it starts.
type dependency struct {
	name  string
	check func(context.Context) error
}

// look asks every dependency at once. One that is away is logged and waited for
// later: it may come back at any time, and starts in any order must work. One
// that answers but isn't made for this program is an error: nothing but a
// person's doing heals that, and serving on would only hide it.
func look(ctx context.Context, logger *slog.Logger, dependencies ...dependency) error {
	bounded, cancel := context.WithTimeout(ctx, startupTimeout)
	defer cancel()
	errs := make([]error, len(dependencies))
	var wg sync.WaitGroup
	for i, d := range dependencies {
		wg.Go(func() { errs[i] = d.check(bounded) })
	}
	wg.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var unfit []error
	for i, d := range dependencies {
		switch err := errs[i]; {
		case err == nil:
		case errors.Is(err, sqlstock.ErrSchema):
			unfit = append(unfit, fmt.Errorf("app: %w", err))
		case errors.Is(err, kafkastock.ErrNoTopic):
			unfit = append(unfit, fmt.Errorf("app: Kafka lacks a topic: run `flashsale migrate`: %w", err))
		default:
			logger.Warn("a server is away, going on without it", "server", d.name, "error", err)
		}
	}
	return errors.Join(unfit...)
}
