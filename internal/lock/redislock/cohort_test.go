package redislock

import (
	"context"
	"sync"
	"testing"
	"time"

	"flashsale/internal/lock"
)

// A process whose own waiters never end must not keep the lock to itself.
func TestCohortLeavesTheLockToOtherProcesses(t *testing.T) {
	addr := realRedis(t)
	crowd := buildCohort(t, connect(t, addr), Options{Wait: time.Minute})
	other := buildCohort(t, connect(t, addr), Options{Wait: 10 * time.Second})
	key := t.Name()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var hammering sync.WaitGroup
	for range 16 {
		hammering.Go(func() {
			for ctx.Err() == nil {
				_ = lock.Do(ctx, crowd, key, func(context.Context, lock.Lease) error { return nil })
			}
		})
	}
	var longest time.Duration
	for range 20 {
		asked := time.Now()
		lease, err := other.Acquire(t.Context(), key)
		if err != nil {
			t.Fatalf("starved for %v: %v", time.Since(asked), err)
		}
		longest = max(longest, time.Since(asked))
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
	stop()
	hammering.Wait()
	t.Logf("waited for %v at most", longest)
}
