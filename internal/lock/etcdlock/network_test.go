package etcdlock

import (
	"testing"
	"time"

	"flashsale/internal/lock"
	"flashsale/internal/lock/locktest"
	"flashsale/internal/servers/servertest"
)

const timeout = 400 * time.Millisecond // of a request on a disturbed line

// bound is of any call on such a line.
const bound = 5 * time.Second

// eachDisturbance runs a test with a lock whose line to etcd is disturbed, one
// that has a line of its own, and all that happens. Once the line is well
// again, no entry may be left.
func eachDisturbance(t *testing.T, test func(t *testing.T, near, far *Lock, disturb, restore func())) {
	endpoints := servertest.Etcd(t)
	observer := connect(t, endpoints)
	for name, how := range locktest.Disturbances(timeout) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			prefix := servertest.Prefix(t) + "/"
			line := locktest.NewLink(t, endpoints[0])
			options := Options{TTL: 2 * time.Second, Timeout: timeout, Prefix: prefix}
			near := open(t, []string{line.Addr()}, options)
			options.Wait, options.Timeout = patience, 0
			far := open(t, endpoints, options)
			if err := locktest.Acquire(t, near).Release(t.Context()); err != nil { // so that it is connected
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

func TestNetworkFailsDuringAcquire(t *testing.T) {
	eachDisturbance(t, func(t *testing.T, near, far *Lock, disturb, _ func()) {
		disturb()
		locktest.Bounded(t, bound, "acquire", func() {
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
		first := locktest.Acquire(t, near)
		disturb()
		locktest.TakeOver(t, far, first)
		locktest.Bounded(t, bound, "release", func() { locktest.Is(t, first.Release(t.Context()), lock.ErrLost) })
	})
}

// A release may fail, but not silently, and another gets the lock all the same.
func TestNetworkFailsDuringRelease(t *testing.T) {
	eachDisturbance(t, func(t *testing.T, near, far *Lock, disturb, _ func()) {
		first := locktest.Acquire(t, near)
		disturb()
		locktest.Bounded(t, bound, "release", func() { locktest.Is(t, first.Release(t.Context()), lock.ErrUnavailable) })
		if err := acquire(t, far).Release(t.Context()); err != nil {
			t.Errorf("release: %v", err)
		}
	})
}
