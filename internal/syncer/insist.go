package syncer

import (
	"context"
	"math/rand/v2"
	"time"
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
		pause(ctx, jitter(min(s.options.RetryMin<<min(failures, 16), s.options.RetryMax)))
		if ctx.Err() != nil {
			return err
		}
	}
}

// pause waits for d or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// jitter is between a half and the whole of d, so that syncers that failed
// together don't try again together.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }

// outlive returns a context that ends grace after ctx does.
func outlive(ctx context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		pause(work, grace)
		cancel()
	})
	return work, func() {
		stop()
		cancel()
	}
}
