package locktest

import (
	"testing"
	"time"

	"flashsale/internal/lock"
)

// Disturbances are what can be wrong with a line, by name. What is too slow takes
// longer than timeout.
func Disturbances(timeout time.Duration) map[string]Disturbance {
	return map[string]Disturbance{
		"reset":         {Reset: true},
		"requests lost": {DropRequests: true},
		"replies lost":  {DropReplies: true},
		"too slow":      {Delay: 2 * timeout},
	}
}

// Acquire tries for 20 s until the lock of "item" is granted: on a busy machine, an
// answer may be late on an undisturbed line too.
func Acquire(t testing.TB, locker lock.Locker) lock.Lease {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; {
		lease, err := locker.Acquire(t.Context(), "item")
		if err == nil {
			return lease
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// Bounded calls fn, which has to end within most.
func Bounded(t testing.TB, most time.Duration, what string, fn func()) {
	t.Helper()
	begin := time.Now()
	fn()
	if took := time.Since(begin); took > most {
		t.Errorf("%s took %v", what, took)
	}
}

// Next sees to it that the lock of an ended lease can be had, with a higher fence.
func Next(t testing.TB, locker lock.Locker, ended lock.Lease) {
	t.Helper()
	follow(t, Acquire(t, locker), ended)
}

// TakeOver is Next of a lease that ends by itself, as its holder has to know when
// another is granted the lock.
func TakeOver(t testing.TB, locker lock.Locker, first lock.Lease) {
	t.Helper()
	second := Acquire(t, locker)
	select {
	case <-first.Lost():
	default:
		t.Error("another was granted the lock before its holder knew of the loss")
	}
	follow(t, second, first)
}

func follow(t testing.TB, next, ended lock.Lease) {
	t.Helper()
	if next.Fence() <= ended.Fence() {
		t.Errorf("fence %d after %d", next.Fence(), ended.Fence())
	}
	if err := next.Release(t.Context()); err != nil {
		t.Errorf("release: %v", err)
	}
}
