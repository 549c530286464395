package syncer

import (
	"context"
	"time"
)

func (s *Syncer) watchLag(ctx context.Context, lagger Lagger) {
	ticker := time.NewTicker(s.options.LagEvery)
	defer ticker.Stop()
	for {
		messages, err := lagger.Lag(ctx)
		switch {
		case err == nil:
			s.options.OnLag(messages)
		case ctx.Err() == nil:
			s.options.Logger.Debug("lag unknown", "error", err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}
