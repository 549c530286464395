package mysqllock

import (
	"strings"
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
		locktest.Next(t, open(t, dsn, Options{Wait: patience}), first) // within the TTL of the silent one
	})
}

// A release may fail, but not silently, and another gets the lock all the same.
func TestNetworkFailsDuringRelease(t *testing.T) {
	eachDisturbance(t, func(t *testing.T, dsn, near string, disturb, _ func()) {
		holder := open(t, near, Options{TTL: 2 * time.Second, Timeout: timeout})
		first := locktest.Acquire(t, holder)
		disturb()
		want := lock.ErrUnavailable
		if strings.HasSuffix(t.Name(), "/reset") {
			want = lock.ErrLost // the connection was the lock
		}
		locktest.Bounded(t, bound, "release", func() { locktest.Is(t, first.Release(t.Context()), want) })
		if stats := holder.db.Stats(); stats.InUse > 0 {
			t.Errorf("%d connections are in use", stats.InUse)
		}
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
