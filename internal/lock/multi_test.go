package lock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"flashsale/internal/lock"
	"flashsale/internal/lock/locktest"
)

// twoKeys is a Multi of which each lock is one of two keys.
type twoKeys struct{ *lock.Multi }

func (m twoKeys) Acquire(ctx context.Context, key string) (lock.Lease, error) {
	lease, err := m.Multi.Acquire(ctx, key, key+"-too")
	if err != nil {
		return nil, err
	}
	return named{lease, key}, nil
}

type named struct {
	lock.Lease
	key string
}

func (n named) Key() string { return n.key }

func TestMultiConforms(t *testing.T) {
	locktest.Run(t, locktest.Features{Excludes: true}, func(*testing.T) locktest.Store {
		return locktest.Store{New: func(_ testing.TB, s locktest.Setting) lock.Locker {
			return twoKeys{lock.NewMulti(lock.NewLocal(lock.LocalOptions{Wait: s.Wait}), lock.MultiOptions{Wait: s.Wait})}
		}}
	})
}

func TestTwoOrdersOfTheSameKeysDeadlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local := lock.NewLocal(lock.LocalOptions{Wait: time.Hour})
		m := lock.NewMulti(local, lock.MultiOptions{Wait: time.Hour})
		start := time.Now()
		var all sync.WaitGroup
		for i := range 40 {
			keys := []string{"a", "b", "c", "a"}
			if i%2 == 1 {
				slices.Reverse(keys)
			}
			all.Go(func() {
				lease, err := m.Acquire(t.Context(), keys...)
				if err != nil {
					t.Error(err)
					return
				}
				time.Sleep(time.Millisecond)
				if err := lease.Release(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if took := time.Since(start); took != 40*time.Millisecond {
			t.Errorf("took %v, want one after the other", took)
		}
	})
}

func TestOneBusyKeyKeepsTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local := lock.NewLocal(lock.LocalOptions{Wait: time.Hour})
		m := lock.NewMulti(local, lock.MultiOptions{Wait: 3 * time.Second})
		busy, err := local.Acquire(t.Context(), "c")
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		_, err = m.Acquire(t.Context(), "c", "a", "b")
		locktest.Is(t, err, lock.ErrNotAcquired)
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("waited %v for all together", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = m.Acquire(ctx, "c", "a", "b")
		locktest.Is(t, err, context.DeadlineExceeded)

		free, err := m.Acquire(t.Context(), "b", "a")
		if err != nil {
			t.Fatalf("the free ones are held: %v", err)
		}
		if free.Key() != "a,b" || len(free.Fences()) != 2 || free.Fences()["b"] <= free.Fences()["a"] || free.Fence() != 0 {
			t.Errorf("keys %q, fences %v, fence %d", free.Key(), free.Fences(), free.Fence())
		}
		_ = free.Release(t.Context())
		_ = busy.Release(t.Context())
	})
}

func TestWaitForSeveralKeysAddsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local := lock.NewLocal(lock.LocalOptions{Wait: time.Hour})
		m := lock.NewMulti(local, lock.MultiOptions{Wait: time.Second})
		for i, key := range []string{"a", "b", "c"} { // each is free a little later
			lease, _ := local.Acquire(t.Context(), key)
			time.AfterFunc(time.Duration(i+1)*400*time.Millisecond, func() { _ = lease.Release(context.Background()) })
		}
		start := time.Now()
		_, err := m.Acquire(t.Context(), "a", "b", "c")
		locktest.Is(t, err, lock.ErrNotAcquired)
		if took := time.Since(start); took != time.Second {
			t.Errorf("waited %v", took)
		}
		time.Sleep(time.Second)
	})
}

func TestNoKeysAreAcquired(t *testing.T) {
	if _, err := lock.NewMulti(lock.None{}, lock.MultiOptions{}).Acquire(t.Context()); err == nil {
		t.Error("granted")
	}
}

// script is a Locker whose leases a test made.
type script map[string]*fake

func (s script) Acquire(_ context.Context, key string) (lock.Lease, error) {
	if err := s[key].acquireErr; err != nil {
		return nil, err
	}
	return s[key], nil
}

func TestMultiHidesWhatBecameOfAKey(t *testing.T) {
	lost, away := fmt.Errorf("x: %w", lock.ErrLost), fmt.Errorf("x: %w", lock.ErrUnavailable)
	for _, test := range []struct {
		name    string
		a, b, c error
		want    error
	}{
		{"all released", nil, nil, nil, nil},
		{"one lost", nil, lost, nil, lock.ErrLost},
		{"one away", away, nil, nil, lock.ErrUnavailable},
		{"a loss behind an outage", lost, away, nil, lock.ErrLost},
		{"a loss before an outage", away, nil, lost, lock.ErrLost},
	} {
		keys := script{"a": {releaseErr: test.a}, "b": {releaseErr: test.b}, "c": {releaseErr: test.c}}
		lease, err := lock.NewMulti(keys, lock.MultiOptions{}).Acquire(t.Context(), "a", "b", "c")
		if err != nil {
			t.Fatal(err)
		}
		err = lease.Release(t.Context())
		if !errors.Is(err, test.want) || err != nil && errors.Is(err, lock.ErrLost) && errors.Is(err, lock.ErrUnavailable) {
			t.Errorf("%s: got %v, want %v", test.name, err, test.want)
		}
		for name, key := range keys {
			if len(key.released) != 1 {
				t.Errorf("%s: %s released %d times", test.name, name, len(key.released))
			}
		}
	}
}

func TestFailureOfTheLastKeyKeepsTheFirst(t *testing.T) {
	for _, want := range []error{lock.ErrNotAcquired, lock.ErrUnavailable, context.Canceled} {
		keys := script{"a": {}, "b": {acquireErr: fmt.Errorf("x: %w", want)}}
		_, err := lock.NewMulti(keys, lock.MultiOptions{}).Acquire(t.Context(), "b", "a")
		locktest.Is(t, err, want)
		if len(keys["a"].released) != 1 || len(keys["b"].released) != 0 {
			t.Errorf("a released %d times, b %d", len(keys["a"].released), len(keys["b"].released))
		}
	}
}

func TestLossOfOneKeyIsNoLossOfAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys := script{"a": {}, "b": {lost: make(chan struct{})}, "c": {lost: make(chan struct{})}}
		m := lock.NewMulti(keys, lock.MultiOptions{})
		lease, err := m.Acquire(t.Context(), "a", "b", "c")
		if err != nil {
			t.Fatal(err)
		}
		close(keys["b"].lost)
		<-lease.Lost()
		_ = lease.Release(t.Context())

		// A key that is lost before the last one is there.
		_, err = m.Acquire(t.Context(), "b", "c")
		locktest.Is(t, err, lock.ErrNotAcquired)
	})
}
