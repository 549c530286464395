package redislock

import (
	"context"
	"sync"
	"testing"
	"time"

	"flashsale/internal/lock"
	"flashsale/internal/lock/locktest"
)

// keepBusy has a process take the lock all the time, so that nobody else ever
// finds it free, until stop is called.
func keepBusy(t *testing.T, w *Watchdog) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for ctx.Err() == nil {
				lease, err := w.Acquire(context.WithoutCancel(ctx), "item")
				if err == nil {
					err = lease.Release(ctx)
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	return func() {
		cancel()
		all.Wait()
	}
}

// Several processes wait: the one that has waited longest comes first.
func TestProcessesAreOvertaken(t *testing.T) {
	addr := realRedis(t)
	client := connect(t, addr)
	holder := newWatchdog(t, addr, Options{Wait: time.Minute})
	var others []*Watchdog
	for range 3 {
		others = append(others, newWatchdog(t, addr, Options{Wait: time.Minute, PollMin: never, PollMax: never}))
	}
	lease := acquire(t, holder)
	order := make(chan int, len(others))
	var all sync.WaitGroup
	for i, other := range others {
		all.Go(func() {
			lease, err := other.Acquire(t.Context(), "item")
			if err != nil {
				t.Error(err)
				return
			}
			order <- i
			if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
		eventually(t, "it is in the list", func() bool { return client.LLen(t.Context(), lineKey(lockKey)).Val() == int64(i+1) })
	}
	// Each of them has nobody behind it, so that its release is for all who
	// listen: only the first one is given the lock.
	behind := waitInBackground(t, holder, "item")
	awaitNext(t, lease)
	endRow(lease)
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if first := <-order; first != 0 {
		t.Errorf("number %d came first", first)
	}
	all.Wait()
	finish(t, behind)
	if left := residue(t, client, "item"); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// A process that died while it waited is given the lock, and doesn't take it.
func TestDeadWaiterKeepsTheLock(t *testing.T) {
	addr := realRedis(t)
	client := connect(t, addr)
	busy := newWatchdog(t, addr, Options{Wait: time.Minute})
	other := newWatchdog(t, addr, Options{Wait: time.Minute, PollMin: never, PollMax: never})
	if err := client.RPush(t.Context(), lineKey(lockKey), "dead").Err(); err != nil {
		t.Fatal(err)
	}
	lease := acquire(t, busy)
	stop := keepBusy(t, busy)
	granted := waitInBackground(t, other, "item")
	eventually(t, "it is in the list, too", func() bool { return client.LLen(t.Context(), lineKey(lockKey)).Val() == 2 })
	awaitNext(t, lease)
	endRow(lease)
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
	finish(t, granted)
	stop()
	if left := residue(t, client, "item"); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// Who doesn't wait any more is not given the lock, and gives back what it was given.
func TestWhoGaveUpStaysInTheList(t *testing.T) {
	addr := realRedis(t)
	client := connect(t, addr)
	lease := acquire(t, newWatchdog(t, addr, Options{Wait: time.Minute}))
	_, err := newWatchdog(t, addr, Options{Wait: 50 * time.Millisecond}).Acquire(t.Context(), "item")
	locktest.Is(t, err, lock.ErrNotAcquired)
	if n := client.LLen(t.Context(), lineKey(lockKey)).Val(); n != 0 {
		t.Errorf("%d in the list", n)
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if left := residue(t, client, "item"); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// The lock is kept for a waiter for a moment. If it comes later than that, it has
// nothing, whoever has the lock by then; if it comes in time, it has the whole TTL.
func TestWaiterThatComesTooLateHasTheLock(t *testing.T) {
	addr := realRedis(t)
	client := connect(t, addr)
	ours := newWatchdog(t, addr, Options{TTL: time.Minute}).protocol.(tokens)
	_, fenceKey := defaultKeys("item")
	ctx := t.Context()
	granted := func(reply answer, err error) uint64 {
		t.Helper()
		if err != nil || !reply.granted {
			t.Fatalf("not granted: %+v, %v", reply, err)
		}
		return reply.fence
	}
	wait := func(token string) {
		t.Helper()
		if reply, err := ours.enlist(ctx, lockKey, fenceKey, token); err != nil || reply.granted || !reply.placed {
			t.Fatalf("%s doesn't wait: %+v, %v", token, reply, err)
		}
	}
	pass := func(from string) {
		t.Helper()
		if _, not, err := ours.handOver(ctx, lockKey, fenceKey, from, "next", 0); err != nil || not != toOther {
			t.Fatalf("%s gave it to nobody: %v, %v", from, not, err)
		}
	}
	fence := granted(ours.acquire(ctx, lockKey, fenceKey, "a"))
	wait("b")
	wait("b") // again: it has one place
	wait("c")

	pass("a")
	if ttl := client.PTTL(ctx, lockKey).Val(); ttl > keptFor {
		t.Errorf("kept for b for %v", ttl)
	}
	own := granted(ours.enlist(ctx, lockKey, fenceKey, "b"))
	if own <= fence {
		t.Errorf("fence %d after %d", own, fence)
	}
	if ttl := client.PTTL(ctx, lockKey).Val(); ttl < 50*time.Second {
		t.Errorf("b came in time, and has the lock for %v", ttl)
	}

	pass("b")
	client.Del(ctx, lockKey) // its moment is over
	late := granted(ours.acquire(ctx, lockKey, fenceKey, "d"))
	if late <= own {
		t.Errorf("fence %d after %d", late, own)
	}
	wait("c")
	if holder := client.Get(ctx, lockKey).Val(); holder != "d" {
		t.Errorf("%q has the lock", holder)
	}
	if waiting := client.LRange(ctx, lineKey(lockKey), 0, -1).Val(); len(waiting) != 1 || waiting[0] != "c" {
		t.Errorf("%q wait", waiting)
	}
}
