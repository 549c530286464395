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
