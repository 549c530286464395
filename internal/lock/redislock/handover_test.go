package redislock

import (
	"context"
	"sync"
	"testing"
	"time"

	"flashsale/internal/lock"
	"flashsale/internal/lock/locktest"
)

// awaitNext returns once a waiter stands in the line behind lease, chosen.
func awaitNext(t *testing.T, lease lock.Lease) {
	t.Helper()
	eventually(t, "somebody is in line", func() bool {
		_, someone := lease.(*watchdogLease).turn.Choose()
		return someone
	})
}

func TestHandoverSharesAFence(t *testing.T) {
	addr := realRedis(t)
	watchdog := newWatchdog(t, addr, Options{Wait: time.Minute})
	last := uint64(0)
	var all sync.WaitGroup
	lease := acquire(t, watchdog)
	for range 3 * maxInARow {
		all.Go(func() {
			next := acquire(t, watchdog)
			if next.Fence() <= last { // guarded by the lock
				t.Errorf("fence %d after %d", next.Fence(), last)
			}
			last = next.Fence()
			if err := next.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	last = lease.Fence()
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
	all.Wait()
	if left := residue(t, connect(t, addr), "item"); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// The exchange that hands over fails: both have to find out by themselves.
func TestAnswerToAHandoverIsLost(t *testing.T) {
	addr := realRedis(t)
	for name, how := range map[string]fault{"not sent": notSent, "reply lost": replyLost} {
		t.Run(name, func(t *testing.T) {
			client, _ := flake(t, addr, acquireScript, func(_ context.Context, nth int) fault {
				if nth == 2 {
					return how
				}
				return pass
			})
			watchdog := buildWatchdog(t, client, Options{Wait: time.Minute, PollMin: never, PollMax: never})
			lease := acquire(t, watchdog)
			granted := waitInBackground(t, watchdog, "item")
			awaitNext(t, lease)
			if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
			finish(t, granted)
			if left := residue(t, client, "item"); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}

// The next in line goes while it is being given the lock.
func TestNextInLineLeavesDuringTheHandover(t *testing.T) {
	addr := realRedis(t)
	for name, how := range map[string]fault{"answered": pass, "reply lost": replyLost} {
		t.Run(name, func(t *testing.T) {
			ctx, leave := context.WithCancel(t.Context())
			client, _ := flake(t, addr, acquireScript, func(_ context.Context, nth int) fault {
				if nth == 2 {
					leave()
					return how
				}
				return pass
			})
			watchdog := buildWatchdog(t, client, Options{Wait: time.Minute})
			lease := acquire(t, watchdog)
			failed := make(chan error)
			go func() {
				_, err := watchdog.Acquire(ctx, "item")
				failed <- err
			}()
			awaitNext(t, lease)
			if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
			locktest.Is(t, <-failed, context.Canceled)
			if left := residue(t, client, "item"); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}

func TestLostLeaseIsHandedOver(t *testing.T) {
	addr := realRedis(t)
	client := connect(t, addr)
	watchdog := newWatchdog(t, addr, Options{Wait: 50 * time.Millisecond})
	lease := acquire(t, watchdog)
	client.Set(t.Context(), lockKey, "another", time.Minute)
	failed := make(chan error)
	go func() {
		_, err := watchdog.Acquire(t.Context(), "item")
		failed <- err
	}()
	awaitNext(t, lease)
	locktest.Is(t, lease.Release(t.Context()), lock.ErrLost)
	locktest.Is(t, <-failed, lock.ErrNotAcquired)
	if holder := client.Get(t.Context(), lockKey).Val(); holder != "another" {
		t.Errorf("the lock was taken from its holder: %q", holder)
	}
}

// A process that always has somebody in line still lets others have the lock.
func TestHandoversStarveOtherProcesses(t *testing.T) {
	addr := realRedis(t)
	busy := newWatchdog(t, addr, Options{Wait: time.Minute})
	other := newWatchdog(t, addr, Options{Wait: time.Minute, PollMin: never, PollMax: never})
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for ctx.Err() == nil {
				if err := acquire(t, busy).Release(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 20 {
		granted := waitInBackground(t, other, "item")
		finish(t, granted)
	}
	stop()
	all.Wait()
}
