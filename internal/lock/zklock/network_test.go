package zklock

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

// eachDisturbance runs a test with a lock whose line to ZooKeeper is disturbed, one
// that has a line of its own, and all that happens. Once the line is well
// again, no node may be left.
func eachDisturbance(t *testing.T, test func(t *testing.T, near, far *Lock, disturb, restore func())) {
	addrs := servertest.ZooKeeper(t)
	observer := dial(t, addrs, Options{})
	for name, how := range locktest.Disturbances(timeout) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := "/" + servertest.Prefix(t)
			line := locktest.NewLink(t, addrs[0])
			options := Options{TTL: 2 * time.Second, Timeout: timeout, Root: root}
			near := dial(t, []string{line.Addr()}, options)
			options.Wait, options.Timeout = patience, 0
			far := dial(t, addrs, options)
			if err := locktest.Acquire(t, near).Release(t.Context()); err != nil { // so that it is connected
				t.Fatal(err)
			}
			restore := func() { line.Disturb(locktest.Disturbance{}) }
			test(t, near, far, func() { line.Disturb(how) }, restore)
			restore()
			for deadline := time.Now().Add(patience); len(nodes(t, observer, root+"/key-item")) > 0; time.Sleep(5 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatalf("left behind: %q", nodes(t, observer, root+"/key-item"))
				}
			}
		})
	}
}

func TestNetworkFailsDuringAcquire(t *testing.T) {
	eachDisturbance(t, func(t *testing.T, near, far *Lock, disturb, restore func()) {
		disturb()
		locktest.Bounded(t, bound, "acquire", func() {
			_, err := near.Acquire(t.Context(), "item")
			locktest.Is(t, err, lock.ErrUnavailable)
		})
		restore()
		if err := acquire(t, far).Release(t.Context()); err != nil { // the session may last
			t.Errorf("release: %v", err)
		}
	})
}

// On a line that is only slow the session lasts, and with it the node of who has
// lost the lock: it goes when it is released and ZooKeeper can be reached.
func TestNetworkFailsDuringExtend(t *testing.T) {
	eachDisturbance(t, func(t *testing.T, near, far *Lock, disturb, restore func()) {
		first := locktest.Acquire(t, near)
		disturb()
		locktest.Bounded(t, bound, "the loss", func() { <-first.Lost() })
		locktest.Bounded(t, bound, "release", func() { locktest.Is(t, first.Release(t.Context()), lock.ErrLost) })
		restore()
		locktest.Next(t, far, first)
	})
}

// A release may fail, but not silently, and another gets the lock all the same.
func TestNetworkFailsDuringRelease(t *testing.T) {
	eachDisturbance(t, func(t *testing.T, near, far *Lock, disturb, restore func()) {
		first := locktest.Acquire(t, near)
		disturb()
		locktest.Bounded(t, bound, "release", func() { locktest.Is(t, first.Release(t.Context()), lock.ErrUnavailable) })
		restore()
		if err := acquire(t, far).Release(t.Context()); err != nil {
			t.Errorf("release: %v", err)
		}
	})
}
