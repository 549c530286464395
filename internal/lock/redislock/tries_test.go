package redislock

import (
	"context"
	"testing"
	"time"

	"flashsale/internal/lock"
	"flashsale/internal/lock/locktest"
)

func TestBoundedTriesAskOnceMoreOrTooSoon(t *testing.T) {
	each(t, func(t *testing.T, rig *rig) {
		holder := acquire(t, rig.locker(t, Options{}))
		var asked []time.Time
		locker, _ := rig.flaky(t, Options{Wait: time.Minute, Tries: 3}, acquireScript, func(context.Context, int) fault {
			asked = append(asked, time.Now())
			return pass
		})
		_, err := locker.Acquire(t.Context(), "item")
		locktest.Is(t, err, lock.ErrNotAcquired)
		if len(asked) != 3 {
			t.Fatalf("asked %d times, want 3", len(asked))
		}
		for i := range 2 {
			if gap := asked[i+1].Sub(asked[i]); gap < 100*time.Millisecond {
				t.Errorf("paused for %v, want 100ms to 300ms", gap)
			}
		}
		if err := holder.Release(t.Context()); err != nil {
			t.Error(err)
		}
		rig.nothingLeft(t)
	})
}

func TestBoundedTriesOutlastTheWait(t *testing.T) {
	each(t, func(t *testing.T, rig *rig) {
		holder := acquire(t, rig.locker(t, Options{}))
		start := time.Now()
		_, err := rig.locker(t, Options{Wait: 50 * time.Millisecond, Tries: 1000}).Acquire(t.Context(), "item")
		locktest.Is(t, err, lock.ErrNotAcquired)
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("waited for %v", took)
		}
		if err := holder.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestBoundedTriesDoNotTryAgain(t *testing.T) {
	each(t, func(t *testing.T, rig *rig) {
		holder := acquire(t, rig.locker(t, Options{}))
		second := func(_ context.Context, nth int) fault {
			if nth == 2 {
				if err := holder.Release(context.Background()); err != nil {
					t.Error(err)
				}
			}
			return pass
		}
		locker, _ := rig.flaky(t, Options{Wait: time.Minute, Tries: 3, PollMin: time.Millisecond, PollMax: 2 * time.Millisecond}, acquireScript, second)
		if err := acquire(t, locker).Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
