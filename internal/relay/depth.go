package relay

import (
	"context"
	"time"
)

// watchDepth reports how much waits in the outbox. Every process watches every
// shard, so that a shard without a leader is seen too.
func (r *Relay) watchDepth(ctx context.Context) {
	ticker := time.NewTicker(r.options.DepthEvery)
	defer ticker.Stop()
	for {
		entries, oldest, err := r.depth(ctx)
		switch {
		case err == nil:
			r.options.OnDepth(entries, oldest)
		case ctx.Err() == nil:
			r.options.Logger.Debug("outbox depth unknown", "error", err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

func (r *Relay) depth(ctx context.Context) (entries int64, oldest time.Duration, err error) {
	for shard := range r.options.Shards {
		n, since, err := r.options.Outbox.Depth(ctx, shard)
		if err != nil {
			return 0, 0, err
		}
		entries += n
		if !since.IsZero() {
			oldest = max(oldest, time.Since(since))
		}
	}
	return entries, oldest, nil
}
