package locktest

import (
	"sync"
	"testing"
	"time"
)

// manyCycles is so many that something small left behind by each is seen.
const manyCycles = 10_000

// RunManyCycles acquires and releases 10,000 times, on so many keys at a time,
// and looks at what is left of each afterwards.
func RunManyCycles(t *testing.T, store Store, keys ...string) {
	t.Helper()
	locker := store.New(t, Setting{Wait: time.Minute})
	var all sync.WaitGroup
	for _, key := range keys {
		all.Go(func() {
			for range manyCycles / len(keys) {
				lease, err := locker.Acquire(t.Context(), key)
				if err != nil {
					t.Error(err)
					return
				}
				if err := lease.Release(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	for _, key := range keys {
		if left := store.Residue(t, key); len(left) > 0 {
			t.Errorf("left of %s: %q", key, left)
		}
	}
}
