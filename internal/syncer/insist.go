package syncer

import (
	"context"
	"time"

	"flashsale/internal/backoff"
)

// insist repeats do until it succeeds. Attempts run under work; once ctx has
// ended there is no further one, and the last one's error is the answer.
func (s *Syncer) insist(ctx, work context.Context, op string, do func(context.Context) error) error {
	began := time.Now()
	for failures := 0; ; failures++ {
		err := do(work)
		if err == nil {
			if failures > 0 {
				s.options.Logger.Info("works again", "operation", op, "failures", failures, "after", time.Since(began))
			}
			return nil
		}
		if ctx.Err() != nil {
			return err
		}
		if failures == 0 {
			s.options.Logger.Warn("failed, trying until it works", "operation", op, "error", err)
		}
		backoff.Wait(ctx, backoff.Pause(failures+1, s.options.RetryMin, s.options.RetryMax))
		if ctx.Err() != nil {
			return err
		}
	}
}

// outlive returns a context that ends grace after ctx does.
func outlive(ctx context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		backoff.Wait(work, grace)
		cancel()
	})
	return work, func() {
		stop()
		cancel()
	}
}
