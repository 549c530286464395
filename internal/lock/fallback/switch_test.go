package fallback_test

import (
	"testing"
	"time"

	"flashsale/internal/lock"
	"flashsale/internal/lock/fallback"
	"flashsale/internal/lock/locktest"
)

// Within a process there is one holder of a key, whichever lock it has.
func TestSwitchLetsTwoHoldInOneProcess(t *testing.T) {
	s := newStore()
	f := build(t, s, fallback.Options{Mode: fallback.Degrade, Wait: lock.TryOnce, Failures: 1, Pause: 1})
	busy := func(when string) {
		t.Helper()
		_, err := f.Acquire(t.Context(), "item")
		if err == nil {
			t.Fatalf("two holders %s", when)
		}
		locktest.Is(t, err, lock.ErrNotAcquired)
	}
	before := acquire(t, f)
	s.answer = errDown
	other, err := f.Acquire(t.Context(), "other") // opens the breaker
	if err != nil {
		t.Fatal(err)
	}
	busy("after the store went down")
	release(t, before)

	degraded := acquire(t, f)
	s.answer = nil
	release(t, other)
	closed, err := f.Acquire(t.Context(), "other") // closes it
	if err != nil || f.State() != fallback.Closed {
		t.Fatal(err, f.State())
	}
	busy("after the store came back")
	release(t, degraded)
	release(t, closed)
	release(t, acquire(t, f))
}

// Two processes don't know of each other once one of them has degraded. This is
// what the package says; a guard in the database has to hold, see guard_test.go.
func TestSwitchLetsTwoHoldInTwoProcesses(t *testing.T) {
	shared := lock.NewLocal(lock.LocalOptions{Wait: lock.TryOnce})
	first, second := &store{Locker: shared}, &store{Locker: shared}
	options := fallback.Options{Mode: fallback.Degrade, Failures: 1, Pause: time.Hour}
	one, two := build(t, first, options), build(t, second, options)

	holder := acquire(t, one)
	_, err := two.Acquire(t.Context(), "item")
	locktest.Is(t, err, lock.ErrNotAcquired) // as long as both reach the store
	second.answer = errDown                  // and the first process still does
	degraded := acquire(t, two)
	if holder.Fence() == 0 || degraded.Fence() != 0 {
		t.Errorf("fences %d and %d, want one of the store and none", holder.Fence(), degraded.Fence())
	}
	select {
	case <-holder.Lost():
		t.Error("the lease of before has ended")
	default:
	}
	release(t, holder)
	release(t, degraded)
}

// A turn that is kept after a failure would wedge the key for this process.
func TestFailedAcquisitionKeepsItsTurn(t *testing.T) {
	s := newStore()
	f := build(t, s, fallback.Options{Mode: fallback.Degrade, Wait: lock.TryOnce, Failures: 2, Pause: time.Hour})
	for _, answer := range []error{lock.ErrNotAcquired, errDown} {
		s.answer = answer
		_, err := f.Acquire(t.Context(), "item")
		if err == nil {
			t.Fatal("granted")
		}
	}
	s.answer = nil
	release(t, acquire(t, f))
}
