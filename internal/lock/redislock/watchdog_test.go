package redislock

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"flashsale/internal/lock"
	"flashsale/internal/lock/locktest"
	"flashsale/internal/servers/servertest"
)

// never is a poll so slow that only a notification can wake a waiter in time.
const never = time.Hour

func TestOneFailedExtensionEndsTheWatchdog(t *testing.T) {
	const ttl = 900 * time.Millisecond
	addr := realRedis(t)
	for name, how := range map[string]fault{"not sent": notSent, "reply lost": replyLost} {
		t.Run(name, func(t *testing.T) {
			client, f := flake(t, addr, extendScript, first(2, how))
			lease := acquire(t, buildWatchdog(t, client, Options{TTL: ttl}))
			eventually(t, "extended again", func() bool { return f.runs(extendScript) >= 5 })
			if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestHolderIsToldOfTheLossTooLate(t *testing.T) {
	const ttl = 2 * time.Second
	addr := realRedis(t)
	hang := make(chan struct{})
	fates := map[string]func(context.Context, int) fault{
		"no extension is sent": first(1000, notSent),
		"an extension hangs":   func(context.Context, int) fault { <-hang; return notSent },
	}
	for name, fate := range fates {
		t.Run(name, func(t *testing.T) {
			client, _ := flake(t, addr, extendScript, fate)
			before := time.Now()
			lease := acquire(t, buildWatchdog(t, client, Options{TTL: ttl, Drift: ttl / 4}))
			<-lease.Lost()
			if took := time.Since(before); took < ttl/2 || took > ttl {
				t.Errorf("told after %v, with a TTL of %v", took, ttl)
			}
			// The server still keeps everybody else out.
			if left := client.PTTL(t.Context(), lockKey).Val(); left <= 0 {
				t.Errorf("told when the lock had gone (%v)", left)
			}
			if name == "an extension hangs" {
				close(hang)
			}
			locktest.Is(t, lease.Release(t.Context()), lock.ErrLost)
		})
	}
}

func TestUnansweredExtensionsCountAsExtensions(t *testing.T) {
	const ttl = 1200 * time.Millisecond
	client, _ := flake(t, realRedis(t), extendScript, first(1000, replyLost))
	before := time.Now()
	lease := acquire(t, buildWatchdog(t, client, Options{TTL: ttl, Drift: ttl / 4}))
	<-lease.Lost()
	if took := time.Since(before); took > ttl {
		t.Errorf("told after %v, with a TTL of %v", took, ttl)
	}
	locktest.Is(t, lease.Release(t.Context()), lock.ErrLost)
	if left := residue(t, client, "item"); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestExtensionRevivesAnExpiredLock(t *testing.T) {
	addr := realRedis(t)
	client := connect(t, addr)
	watchdog := newWatchdog(t, addr, Options{})

	if ours, err := watchdog.extend(t.Context(), lockKey, "token"); ours || err != nil {
		t.Errorf("extended a lock that isn't there: %v, %v", ours, err)
	}
	client.Set(t.Context(), lockKey, "another", time.Minute)
	if ours, err := watchdog.extend(t.Context(), lockKey, "token"); ours || err != nil {
		t.Errorf("extended another's lock: %v, %v", ours, err)
	}
	if client.PTTL(t.Context(), lockKey).Val() > time.Minute {
		t.Error("another's TTL was changed")
	}
}

func TestReleaseBeforeTheSubscriptionIsMissed(t *testing.T) {
	addr := realRedis(t)
	holder := newWatchdog(t, addr, Options{})
	client, _ := flake(t, addr, nil, nil)
	waiter := buildWatchdog(t, client, Options{PollMin: never, PollMax: never, Wait: time.Minute})
	var lease lock.Lease
	client.AddHook(afterScript(func() { // the first refusal is on its way, and nobody listens yet
		if held := lease; held != nil {
			lease = nil
			if err := held.Release(context.Background()); err != nil {
				t.Error(err)
			}
		}
	}))
	for range 3 { // the later times, there is a subscription left
		lease = acquire(t, holder)
		start := time.Now()
		next := acquire(t, waiter)
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("granted after %v", took)
		}
		if err := next.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestWaiterIsWokenByThePollAlone(t *testing.T) {
	addr := realRedis(t)
	holder := newWatchdog(t, addr, Options{})
	waiter := newWatchdog(t, addr, Options{PollMin: never, PollMax: never, Wait: time.Minute})
	for range 20 {
		lease := acquire(t, holder)
		granted := waitInBackground(t, waiter, "item")
		eventually(t, "the waiter subscribes", func() bool { return subscribed(waiter, lockKey) })
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
		finish(t, granted)
	}
}

func TestRestartOfRedisEndsTheNotifications(t *testing.T) {
	server := servertest.RedisServer(t)
	holder := newWatchdog(t, server.Addr(), Options{})
	waiter := newWatchdog(t, server.Addr(), Options{PollMin: never, PollMax: never, Wait: time.Minute})
	client := connect(t, server.Addr())

	lease := acquire(t, holder)
	granted := waitInBackground(t, waiter, "item")
	eventually(t, "the waiter subscribes", func() bool { return subscribed(waiter, lockKey) })
	server.Kill()
	start(t, server)
	eventually(t, "the waiter is back", func() bool {
		return client.PubSubNumSub(t.Context(), lockKey).Val()[lockKey] == 1
	})
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
	finish(t, granted)
}

func TestPollDoesNotCoverForNotifications(t *testing.T) {
	addr := realRedis(t)
	lease := acquire(t, newSetNX(t, addr, Options{})) // its release is not published
	waiter := newWatchdog(t, addr, Options{PollMin: 10 * time.Millisecond, PollMax: 20 * time.Millisecond, Wait: time.Minute})
	granted := waitInBackground(t, waiter, "item")
	eventually(t, "the waiter subscribes", func() bool { return subscribed(waiter, lockKey) })
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
	finish(t, granted)
}

func TestCrashedHolderIsNoticedByThePollAlone(t *testing.T) {
	addr := realRedis(t)
	client := connect(t, addr)
	client.Set(t.Context(), lockKey, "crashed", 100*time.Millisecond)
	waiter := newWatchdog(t, addr, Options{PollMin: never, PollMax: never, Wait: time.Minute})
	finish(t, waitInBackground(t, waiter, "item"))
}

func TestEachWaiterHasAConnection(t *testing.T) {
	addr := realRedis(t)
	noLeak := leakCheck(t)
	holder := newWatchdog(t, addr, Options{})
	client := connect(t, addr)
	waiter, err := NewWatchdog(client, Options{PollMin: never, PollMax: never, Wait: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	connections := func() uint32 { return client.PoolStats().PubSubStats.Active }
	var (
		leases  []lock.Lease
		granted []<-chan lock.Lease
	)
	for i := range 20 {
		key := fmt.Sprint("item-", i)
		lease, err := holder.Acquire(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		leases = append(leases, lease)
		for range 3 { // of one process: the first alone asks
			granted = append(granted, waitInBackground(t, waiter, key))
		}
		eventually(t, "the waiter subscribes", func() bool { return subscribed(waiter, "lock:{"+key+"}") })
	}
	if n := connections(); n != 1 {
		t.Errorf("60 waiters have %d connections", n)
	}
	for _, lease := range leases {
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
	for _, g := range granted {
		finish(t, g)
	}

	// Nobody waits any more: without a Close, everything goes by itself.
	eventually(t, "the connection is closed", func() bool { return connections() == 0 })
	noLeak()
}

func TestCloseLeavesWaitersBehind(t *testing.T) {
	addr := realRedis(t)
	lease := acquire(t, newWatchdog(t, addr, Options{}))
	waiter := newWatchdog(t, addr, Options{PollMin: 10 * time.Millisecond, PollMax: 20 * time.Millisecond, Wait: time.Minute})
	granted := waitInBackground(t, waiter, "item")
	eventually(t, "the waiter subscribes", func() bool { return subscribed(waiter, lockKey) })
	if err := waiter.Close(); err != nil {
		t.Error(err)
	}
	if err := waiter.Close(); err != nil {
		t.Error(err)
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
	finish(t, granted)
}

func TestClosedClientKeepsTheListenerBusy(t *testing.T) {
	addr := realRedis(t)
	noLeak := leakCheck(t)
	lease := acquire(t, newWatchdog(t, addr, Options{}))
	client := connect(t, addr)
	waiter, err := NewWatchdog(client, Options{PollMin: 10 * time.Millisecond, PollMax: 20 * time.Millisecond, Wait: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan error)
	go func() {
		_, err := waiter.Acquire(t.Context(), "item")
		failed <- err
	}()
	eventually(t, "the waiter subscribes", func() bool { return subscribed(waiter, lockKey) })
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	locktest.Is(t, <-failed, lock.ErrUnavailable)
	eventually(t, "the listener gives up", func() bool {
		waiter.listener.mu.Lock()
		defer waiter.listener.mu.Unlock()
		return waiter.listener.closed
	})
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
	noLeak()
}

func TestHolderThatLostTheLockBlocksItsProcess(t *testing.T) {
	addr := realRedis(t)
	client := connect(t, addr)
	watchdog := newWatchdog(t, addr, Options{TTL: 600 * time.Millisecond, Wait: time.Minute})
	lease := acquire(t, watchdog)
	client.Del(t.Context(), lockKey)
	next := acquire(t, watchdog) // though the first holder has not said a word
	locktest.Is(t, lease.Release(t.Context()), lock.ErrLost)
	if err := next.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestWholeProcessAsksRedisAtOnce(t *testing.T) {
	addr := realRedis(t)
	client, f := flake(t, addr, acquireScript, func(context.Context, int) fault { return pass })
	watchdog := buildWatchdog(t, client, Options{Wait: time.Minute})
	lease := acquire(t, watchdog)
	var all sync.WaitGroup
	for range 32 {
		all.Go(func() {
			if err := acquire(t, watchdog).Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
	all.Wait()
	if n := f.runs(acquireScript); n > 33 {
		t.Errorf("33 grants took %d questions", n)
	}
}

func TestDeleteOvertakesAnExtensionUnderWay(t *testing.T) {
	const ttl = 900 * time.Millisecond
	underWay := make(chan struct{})
	var f *flaky
	client, f := flake(t, realRedis(t), extendScript, func(_ context.Context, nth int) fault {
		if nth == 1 {
			close(underWay)
			time.Sleep(50 * time.Millisecond) // time enough for a release that doesn't wait
			if f.runs(releaseScript) > 0 {
				t.Error("deleted while it is being extended")
			}
		}
		return pass
	})
	lease := acquire(t, buildWatchdog(t, client, Options{TTL: ttl}))
	<-underWay
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestStolenLockIsNoticedByTheClockAlone(t *testing.T) {
	addr := realRedis(t)
	const ttl = 1500 * time.Millisecond
	lease := acquire(t, newWatchdog(t, addr, Options{TTL: ttl}))
	start := time.Now()
	connect(t, addr).Del(t.Context(), lockKey)
	<-lease.Lost()
	if took := time.Since(start); took > ttl*4/5 {
		t.Errorf("told after %v, though the extension after %v could tell", took, ttl/3)
	}
	locktest.Is(t, lease.Release(t.Context()), lock.ErrLost)
}

// leakCheck returns a function that fails the test if goroutines have come since.
func leakCheck(t *testing.T) func() {
	const serve = "github.com/alicebob/miniredis/v2/server.(*Server).servePeer" // of the stand-in: it lives in this process
	options := []goleak.Option{
		goleak.IgnoreCurrent(),
		goleak.IgnoreAnyFunction(serve),
		goleak.IgnoreAnyFunction(serve + ".func2"),
	}
	return func() {
		t.Helper()
		goleak.VerifyNone(t, options...)
	}
}

// waitInBackground starts to acquire key.
func waitInBackground(t *testing.T, locker lock.Locker, key string) <-chan lock.Lease {
	granted := make(chan lock.Lease, 1)
	go func() {
		defer close(granted)
		lease, err := locker.Acquire(t.Context(), key)
		if err != nil {
			t.Error(err)
			return
		}
		granted <- lease
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	return granted
}

// finish waits until a background acquisition was granted and released.
func finish(t *testing.T, granted <-chan lock.Lease) {
	t.Helper()
	timeout := time.After(10 * time.Second)
	for range 2 {
		select {
		case <-granted:
		case <-timeout:
			t.Fatal("still waiting for a lock that is free")
		}
	}
}

// subscribed reports whether a waiter is sure to hear of a release.
func subscribed(w *Watchdog, name string) bool { return w.listener.hears(name) }

func (l *listener) hears(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.channels[name]
	return c != nil && c.heard && len(c.waiters) > 0
}
