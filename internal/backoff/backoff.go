// Package backoff spaces out what is tried again after a failure.
package backoff

import (
	"context"
	"math/rand/v2"
	"time"
)

// Pause is the time to wait after so many failures in a row: least after the
// first, doubled with each, never above most, and jittered.
func Pause(failures int, least, most time.Duration) time.Duration {
	return Jitter(min(least<<min(max(failures-1, 0), 16), most))
}

// Jitter is between a half and the whole of d, so that processes that failed
// together don't try again together.
func Jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }

// Wait reports whether d has passed before ctx ended.
func Wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
