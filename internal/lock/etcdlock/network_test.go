package etcdlock

import (
	"testing"
	"time"

	"flashsale/internal/lock"
	"flashsale/internal/lock/locktest"
	"flashsale/internal/servers/servertest"
)

const timeout = 400 * time.Millisecond // of a request on a disturbed line

// eachDisturbance runs a test with a lock whose line to etcd is disturbed, one
// that has a line of its own, and all that happens. Once the line is well
// again, no entry may be left.
func eachDisturbance(t *testing.T, test func(t *testing.T, near, far *Lock, disturb, restore func())) {
	endpoints := servertest.Etcd(t)
	observer := connect(t, endpoints)
	for name, how := range map[string]locktest.Disturbance{
		"reset":         {Reset: true},
		"requests lost": {DropRequests: true},
		"replies lost":  {DropReplies: true},
		"too slow":      {Delay: 2 * timeout},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			prefix := servertest.Prefix(t) + "/"
			line := locktest.NewLink(t, endpoints[0])
			options := Options{TTL: 2 * time.Second, Timeout: timeout, Prefix: prefix}
			near := open(t, []string{line.Addr()}, options)
			options.Wait, options.Timeout = patience, 0
			far := open(t, endpoints, options)
			if err := acquireNear(t, near).Release(t.Context()); err != nil { // so that it is connected
				t.Fatal(err)
			}
			restore := func() { line.Disturb(locktest.Disturbance{}) }
			test(t, near, far, func() { line.Disturb(how) }, restore)
			restore()
			for deadline := time.Now().Add(patience); len(entries(t, observer, prefix)) > 0; time.Sleep(5 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatalf("left behind: %q", entries(t, observer, prefix))
				}
			}
		})
	}
}

// acquireNear tries until it is granted: on a busy machine, an answer may be late
// on an undisturbed line too.
func acquireNear(t testing.TB, near *Lock) lock.Lease {
	t.Helper()
	for deadline := time.Now().Add(patience); ; {
		lease, err := near.Acquire(t.Context(), "item")
		if err == nil {
			return lease
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// bounded calls fn, which has to end in time.
func bounded(t *testing.T, what string, fn func()) {
	t.Helper()
	begin := time.Now()
	fn()
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("%s took %v", what, took)
	}
}

// next sees to it that another is let in, with a higher fence.
func next(t *testing.T, far *Lock, first lock.Lease) {
	t.Helper()
	second := acquire(t, far)
	select {
	case <-first.Lost():
	default:
		t.Error("another was granted the lock before its holder knew of the loss")
	}
	if second.Fence() <= first.Fence() {
		t.Errorf("fence %d after %d", second.Fence(), first.Fence())
	}
	if err := second.Release(t.Context()); err != nil {
		t.Errorf("release: %v", err)
	}
}

func TestNetworkFailsDuringAcquire(t *testing.T) {
	eachDisturbance(t, func(t *testing.T, near, far *Lock, disturb, _ func()) {
		disturb()
		bounded(t, "acquire", func() {
			_, err := near.Acquire(t.Context(), "item")
			locktest.Is(t, err, lock.ErrUnavailable)
		})
		if err := acquire(t, far).Release(t.Context()); err != nil {
			t.Errorf("release: %v", err)
		}
	})
}

func TestNetworkFailsDuringExtend(t *testing.T) {
	eachDisturbance(t, func(t *testing.T, near, far *Lock, disturb, _ func()) {
		first := acquireNear(t, near)
		disturb()
		next(t, far, first)
		bounded(t, "release", func() { locktest.Is(t, first.Release(t.Context()), lock.ErrLost) })
	})
}

// A release may fail, but not silently, and another gets the lock all the same.
func TestNetworkFailsDuringRelease(t *testing.T) {
	eachDisturbance(t, func(t *testing.T, near, far *Lock, disturb, _ func()) {
		first := acquireNear(t, near)
		disturb()
		bounded(t, "release", func() { locktest.Is(t, first.Release(t.Context()), lock.ErrUnavailable) })
		if err := acquire(t, far).Release(t.Context()); err != nil {
			t.Errorf("release: %v", err)
		}
	})
}
