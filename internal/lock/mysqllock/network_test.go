package mysqllock

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"flashsale/internal/lock"
	"flashsale/internal/lock/locktest"
)

const timeout = 300 * time.Millisecond // of a statement on a disturbed line

// bound is of any call on such a line.
const bound = 4 * time.Second

// eachDisturbance runs a test with a line to MySQL and with all that happens on
// it. Once the line is well again, nothing may be left in MySQL or in the process.
func eachDisturbance(t *testing.T, test func(t *testing.T, dsn, near string, disturb func(), restore func())) {
	database(t) // starts the server, whose process is no leak of a test's
	for name, how := range locktest.Disturbances(timeout) {
		t.Run(name, func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			t.Cleanup(func() { goleak.VerifyNone(t, before) }) // runs last
			dsn, admin := database(t)
			line, near := overLine(t, dsn)
			restore := func() { line.Disturb(locktest.Disturbance{}) }
			test(t, dsn, near, func() { line.Disturb(how) }, restore)
			restore()
			if left := transactions(t, admin); len(left) > 0 {
				t.Errorf("transactions are left: %q", left)
			}
		})
	}
}

func TestNetworkFailsDuringAcquire(t *testing.T) {
	eachDisturbance(t, func(t *testing.T, _, near string, disturb, restore func()) {
		locker := open(t, near, Options{TTL: time.Minute, Timeout: timeout})
		if err := locktest.Acquire(t, locker).Release(t.Context()); err != nil { // so that it is connected
			t.Fatal(err)
		}
		disturb()
		locktest.Bounded(t, bound, "acquire", func() {
			_, err := locker.Acquire(t.Context(), "item")
			locktest.Is(t, err, lock.ErrUnavailable)
		})
		restore()
		if err := locktest.Acquire(t, locker).Release(t.Context()); err != nil {
			t.Errorf("release: %v", err)
		}
	})
}

func TestNetworkFailsDuringExtend(t *testing.T) {
	eachDisturbance(t, func(t *testing.T, dsn, near string, disturb, _ func()) {
		first := locktest.Acquire(t, open(t, near, Options{TTL: 2 * time.Second, Timeout: timeout}))
		disturb()
		locktest.Bounded(t, bound, "the loss", func() { <-first.Lost() })
		locktest.Bounded(t, bound, "release", func() { locktest.Is(t, first.Release(t.Context()), lock.ErrLost) })
		second := acquire(t, open(t, dsn, Options{Wait: patience})) // within the TTL of the silent one
		if second.Fence() <= first.Fence() {
			t.Errorf("fence %d after %d", second.Fence(), first.Fence())
		}
		if err := second.Release(t.Context()); err != nil {
			t.Errorf("release: %v", err)
		}
	})
}

// A release may fail, but not silently, and another gets the lock all the same.
func TestNetworkFailsDuringRelease(t *testing.T) {
	eachDisturbance(t, func(t *testing.T, dsn, near string, disturb, _ func()) {
		first := locktest.Acquire(t, open(t, near, Options{TTL: 2 * time.Second, Timeout: timeout}))
		disturb()
		locktest.Bounded(t, bound, "release", func() {
			if err := first.Release(t.Context()); err == nil {
				t.Error("a release that was not answered is none")
			}
		})
		if err := acquire(t, open(t, dsn, Options{Wait: patience})).Release(t.Context()); err != nil {
			t.Errorf("release: %v", err)
		}
	})
}

// A waiter whose wait is over and who can't be told to have left is still in
// MySQL's line: that is no mere contention.
func TestNetworkFailsWhileWaiting(t *testing.T) {
	dsn, admin := database(t)
	line, near := overLine(t, dsn)
	holder := acquire(t, open(t, dsn, Options{}))
	failed := make(chan error, 1)
	waiter := open(t, near, Options{Wait: 4 * time.Second, Timeout: time.Second})
	go func() {
		_, err := waiter.Acquire(t.Context(), "item")
		failed <- err
	}()
	for deadline := time.Now().Add(patience); len(query(t, admin, waiting)) == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("nobody waits")
		}
	}
	line.Disturb(locktest.Disturbance{DropRequests: true})
	locktest.Is(t, <-failed, lock.ErrUnavailable)
	if err := holder.Release(t.Context()); err != nil {
		t.Errorf("release: %v", err)
	}
	line.Disturb(locktest.Disturbance{})
	if left := transactions(t, admin); len(left) > 0 {
		t.Errorf("transactions are left: %q", left)
	}
}

const waiting = "SELECT ID FROM information_schema.PROCESSLIST WHERE DB = DATABASE() AND INFO LIKE 'SELECT fence%'"

// Who leaves while an acquisition is under way, at whatever statement, leaves no
// row lock, no transaction and no goroutine: beside a holder, and alone.
func TestACallerThatLeavesLeavesNoRowLock(t *testing.T) {
	database(t)
	for name, held := range map[string]bool{"free": false, "held": true} {
		t.Run(name, func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			t.Cleanup(func() { goleak.VerifyNone(t, before) })
			dsn, admin := database(t)
			l := open(t, dsn, Options{})
			other := open(t, dsn, Options{Wait: lock.TryOnce})
			if err := acquire(t, l).Release(t.Context()); err != nil { // makes the row
				t.Fatal(err)
			}
			var holder lock.Lease
			if held {
				holder = acquire(t, other)
			}
			for after := range 20 { // at various instants of an acquisition that takes some milliseconds
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(after)*150*time.Microsecond)
				lease, err := l.Acquire(ctx, "item")
				cancel()
				if err != nil {
					locktest.Is(t, err, context.DeadlineExceeded)
				} else if err := lease.Release(t.Context()); err != nil {
					t.Errorf("release: %v", err)
				}
			}
			if held {
				if err := holder.Release(t.Context()); err != nil {
					t.Errorf("release: %v", err)
				}
			}
			if left := transactions(t, admin); len(left) > 0 {
				t.Fatalf("transactions are left: %q", left)
			}
			if err := acquire(t, l).Release(t.Context()); err != nil {
				t.Errorf("release: %v", err)
			}
		})
	}
}
