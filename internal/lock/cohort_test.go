package lock_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"flashsale/internal/lock"
)

// below is a lock that grants at once, a fence larger by one each time, and
// counts. It fails the test when it is granted twice.
type below struct {
	testing.TB
	mu      sync.Mutex
	grants  uint64
	held    *belowLease
	refusal error
}

type belowLease struct {
	*below
	fence uint64
	lost  chan struct{}
}

func (b *below) Acquire(context.Context, string) (lock.Lease, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refusal != nil {
		return nil, b.refusal
	}
	if b.held != nil {
		b.Error("granted to two at a time")
	}
	b.grants++
	b.held = &belowLease{b, b.grants, make(chan struct{})}
	return b.held, nil
}

func (l *belowLease) Key() string           { return "item" }
func (l *belowLease) Fence() uint64         { return l.fence }
func (l *belowLease) Lost() <-chan struct{} { return l.lost }
func (l *belowLease) Release(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == l {
		l.held = nil
	}
	select {
	case <-l.lost:
		return lock.ErrLost
	default:
		return nil
	}
}

// lineUp lets n wait behind a holder, in order, and returns its lease and what
// they are granted.
func lineUp(t *testing.T, locker lock.Locker, n int) (lock.Lease, <-chan lock.Lease) {
	t.Helper()
	first, err := locker.Acquire(t.Context(), "item")
	if err != nil {
		t.Fatal(err)
	}
	granted := make(chan lock.Lease, n)
	for range n {
		go func() {
			lease, err := locker.Acquire(t.Context(), "item")
			if err != nil {
				t.Error(err)
			}
			granted <- lease
		}()
		synctest.Wait()
	}
	return first, granted
}

func release(t *testing.T, lease lock.Lease) {
	t.Helper()
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

func cohort(t *testing.T, name string, options lock.CohortOptions, test func(*testing.T, *below, *lock.Cohort)) {
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := &below{TB: t}
			c := lock.NewCohort(b, options)
			test(t, b, c)
			synctest.Wait()
			if b.held != nil {
				t.Error("the lease below was not given back")
			}
			lease, err := c.Acquire(t.Context(), "item")
			if err != nil {
				t.Fatal("afterwards:", err)
			}
			release(t, lease)
		})
	})
}

func TestCohortHandsOn(t *testing.T) {
	fencesOf := func(hold time.Duration, retire int) func(*testing.T, *below, *lock.Cohort) []uint64 {
		return func(t *testing.T, b *below, c *lock.Cohort) (fences []uint64) {
			lease, granted := lineUp(t, c, 6)
			for n := range 7 {
				fences = append(fences, lease.Fence())
				time.Sleep(hold)
				if n == retire {
					lock.Retire(observed(t, lease))
				}
				release(t, lease)
				if n < 6 {
					lease = <-granted
				}
			}
			return fences
		}
	}
	for _, test := range []struct {
		name    string
		options lock.CohortOptions
		hold    time.Duration
		retire  int
		want    []uint64
	}{
		{"while somebody waits", lock.CohortOptions{}, 0, -1, []uint64{1, 1, 1, 1, 1, 1, 1}},
		{"to so many", lock.CohortOptions{Count: 3}, 0, -1, []uint64{1, 1, 1, 2, 2, 2, 3}},
		{"for so long", lock.CohortOptions{}, 9 * time.Millisecond, -1, []uint64{1, 1, 1, 2, 2, 2, 3}},
		{"not when it is retired", lock.CohortOptions{}, 0, 2, []uint64{1, 1, 1, 2, 2, 2, 2}},
	} {
		cohort(t, test.name, test.options, func(t *testing.T, b *below, c *lock.Cohort) {
			if got := fencesOf(test.hold, test.retire)(t, b, c); !slices.Equal(got, test.want) {
				t.Errorf("fences are %v, want %v", got, test.want)
			}
		})
	}
}

// What CohortOptions says of its zero value, to the holder and to the nanosecond.
func TestCohortBoundsByDefault(t *testing.T) {
	cohort(t, "64 holders", lock.CohortOptions{}, func(t *testing.T, b *below, c *lock.Cohort) {
		lease, granted := lineUp(t, c, 65)
		for holder := 1; holder <= 66; holder++ {
			want := uint64(1)
			if holder > 64 {
				want = 2
			}
			if got := lease.Fence(); got != want {
				t.Errorf("holder %d has fence %d, want %d", holder, got, want)
			}
			release(t, lease)
			if holder < 66 {
				lease = <-granted
			}
		}
	})
	for age, want := range map[time.Duration]uint64{20*time.Millisecond - 1: 1, 20 * time.Millisecond: 2} {
		cohort(t, "a lease of "+age.String(), lock.CohortOptions{}, func(t *testing.T, b *below, c *lock.Cohort) {
			lease, granted := lineUp(t, c, 1)
			time.Sleep(age)
			release(t, lease)
			next := <-granted
			if got := next.Fence(); got != want {
				t.Errorf("the next holder has fence %d, want %d", got, want)
			}
			release(t, next)
		})
	}
}

// observed is a lease as metrics wrap it.
func observed(t *testing.T, lease lock.Lease) lock.Lease {
	wrapped, err := lock.Observe(granter{lease}, lock.Observer{}).Acquire(t.Context(), "item")
	if err != nil {
		t.Fatal(err)
	}
	return wrapped
}

type granter struct{ lock.Lease }

func (g granter) Acquire(context.Context, string) (lock.Lease, error) { return g.Lease, nil }

func TestCohortLoss(t *testing.T) {
	cohort(t, "reaches who holds it now, and nobody else", lock.CohortOptions{}, func(t *testing.T, b *below, c *lock.Cohort) {
		first, granted := lineUp(t, c, 2)
		release(t, first)
		second := <-granted
		close(b.held.lost)
		<-second.Lost()
		synctest.Wait()
		select {
		case <-first.Lost():
			t.Error("who had released was told of the loss")
		default:
		}
		if err := second.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
			t.Errorf("release: %v, want ErrLost", err)
		}
		third := <-granted
		if third.Fence() != 2 {
			t.Errorf("fence is %d: a lost lease was handed on", third.Fence())
		}
		release(t, third)
	})
}

func TestCohortWaitersGiveUp(t *testing.T) {
	cohort(t, "in line", lock.CohortOptions{Wait: time.Second}, func(t *testing.T, b *below, c *lock.Cohort) {
		first, err := c.Acquire(t.Context(), "item")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Acquire(t.Context(), "item"); !errors.Is(err, lock.ErrNotAcquired) {
			t.Errorf("error is %v, want ErrNotAcquired", err)
		}
		release(t, first)
	})
	cohort(t, "in the moment in which it is their turn", lock.CohortOptions{}, func(t *testing.T, b *below, c *lock.Cohort) {
		for range 200 {
			first, err := c.Acquire(t.Context(), "item")
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			var waiters sync.WaitGroup
			for range 3 {
				waiters.Go(func() {
					if lease, err := c.Acquire(ctx, "item"); err == nil {
						release(t, lease)
					}
				})
			}
			synctest.Wait()
			waiters.Go(cancel)
			release(t, first)
			waiters.Wait()
		}
	})
	cohort(t, "because there is no lock to be had", lock.CohortOptions{}, func(t *testing.T, b *below, c *lock.Cohort) {
		b.refusal = lock.ErrUnavailable
		for range 2 {
			if _, err := c.Acquire(t.Context(), "item"); !errors.Is(err, lock.ErrUnavailable) {
				t.Errorf("error is %v, want that of the lock below", err)
			}
		}
		b.refusal = nil
	})
}
