package lock_test

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"flashsale/internal/lock"
	"flashsale/internal/lock/locktest"
)

// strangers is a Reentrant whose every caller is another owner.
type strangers struct {
	*lock.Reentrant
	last *atomic.Int64
}

func (s strangers) Acquire(ctx context.Context, key string) (lock.Lease, error) {
	return s.For(strconv.FormatInt(s.last.Add(1), 10)).Acquire(ctx, key)
}

func TestReentrantConforms(t *testing.T) {
	locktest.Run(t, locktest.Features{Excludes: true, Fence: true}, func(*testing.T) locktest.Store {
		return locktest.Store{New: func(_ testing.TB, s locktest.Setting) lock.Locker {
			return strangers{lock.NewReentrant(lock.NewLocal(lock.LocalOptions{Wait: s.Wait})), new(atomic.Int64)}
		}}
	})
}

func TestOwnerWaitsForItself(t *testing.T) {
	r := lock.NewReentrant(lock.NewLocal(lock.LocalOptions{Wait: lock.TryOnce}))
	mine, others := r.For("purchase-1"), r.For("purchase-2")
	work := func(context.Context, lock.Lease) error { return nil }
	err := lock.Do(t.Context(), mine, "item", func(ctx context.Context, outer lock.Lease) error {
		return lock.Do(ctx, mine, "item", func(ctx context.Context, inner lock.Lease) error {
			if inner.Fence() != outer.Fence() || inner.Key() != "item" {
				t.Errorf("fences %d and %d, key %q", outer.Fence(), inner.Fence(), inner.Key())
			}
			locktest.Is(t, lock.Do(ctx, others, "item", work), lock.ErrNotAcquired)
			return lock.Do(ctx, others, "another", work)
		})
	})
	if err != nil {
		t.Error(err)
	}
	if err := lock.Do(t.Context(), others, "item", work); err != nil {
		t.Errorf("still held: %v", err)
	}
}

func TestInnerReleaseOpensTheLock(t *testing.T) {
	for name, order := range map[string][]int{"inside out": {2, 1, 0}, "outside in": {0, 1, 2}, "twice each": {1, 1, 1, 2, 2, 0, 0}} {
		t.Run(name, func(t *testing.T) {
			r := lock.NewReentrant(lock.NewLocal(lock.LocalOptions{Wait: lock.TryOnce}))
			var leases []lock.Lease
			for range 3 {
				lease, err := r.For("me").Acquire(t.Context(), "item")
				if err != nil {
					t.Fatal(err)
				}
				leases = append(leases, lease)
			}
			released := map[int]bool{}
			for _, i := range order {
				if err := leases[i].Release(t.Context()); err != nil {
					t.Error(err)
				}
				released[i] = true
				lease, err := r.For("another").Acquire(t.Context(), "item")
				if open := err == nil; open != (len(released) == 3) {
					t.Errorf("after %d of 3 releases: %v", len(released), err)
				}
				if err == nil {
					_ = lease.Release(t.Context())
				}
			}
		})
	}
}

func TestOwnerReentersALeaseThatIsLost(t *testing.T) {
	keys := script{"item": {lost: make(chan struct{}), releaseErr: lock.ErrLost}}
	owner := lock.NewReentrant(keys).For("me")
	err := lock.Do(t.Context(), owner, "item", func(ctx context.Context, _ lock.Lease) error {
		close(keys["item"].lost)
		return lock.Do(ctx, owner, "item", func(context.Context, lock.Lease) error {
			t.Error("worked without a lock")
			return nil
		})
	})
	if err == nil {
		t.Error("no error")
	}
	if n := len(keys["item"].released); n != 1 {
		t.Errorf("released %d times", n)
	}
	keys["item"] = &fake{} // a new one
	if err := lock.Do(t.Context(), owner, "item", func(context.Context, lock.Lease) error { return nil }); err != nil {
		t.Errorf("the loss stays for ever: %v", err)
	}
}

func TestOwnersOtherGoroutineWaitsForTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local := lock.NewLocal(lock.LocalOptions{Wait: time.Minute})
		r := lock.NewReentrant(local)
		busy, err := local.Acquire(t.Context(), "item")
		if err != nil {
			t.Fatal(err)
		}
		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var (
			all     sync.WaitGroup
			granted atomic.Int32
		)
		for i, ctx := range []context.Context{t.Context(), t.Context(), impatient} {
			all.Go(func() {
				lease, err := r.For("me").Acquire(ctx, "item")
				if i == 2 {
					locktest.Is(t, err, context.DeadlineExceeded)
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				granted.Add(1)
				time.Sleep(time.Second)
				_ = lease.Release(t.Context())
			})
			synctest.Wait() // in this order
		}
		time.Sleep(2 * time.Second)
		_ = busy.Release(t.Context())
		synctest.Wait()
		if granted.Load() != 2 {
			t.Errorf("%d of one owner's two are in", granted.Load())
		}
		all.Wait()
		next, err := local.Acquire(t.Context(), "item")
		if err != nil {
			t.Fatalf("still held: %v", err)
		}
		_ = next.Release(t.Context())
	})
}

func TestFirstGoroutinesFailureIsTheOthersToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local := lock.NewLocal(lock.LocalOptions{Wait: time.Minute})
		r := lock.NewReentrant(local)
		busy, _ := local.Acquire(t.Context(), "item")
		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		go func() {
			_, err := r.For("me").Acquire(impatient, "item")
			locktest.Is(t, err, context.DeadlineExceeded)
		}()
		synctest.Wait()
		done := make(chan error, 1)
		go func() {
			lease, err := r.For("me").Acquire(t.Context(), "item")
			if err == nil {
				err = lease.Release(t.Context())
			}
			done <- err
		}()
		time.Sleep(2 * time.Second)
		_ = busy.Release(t.Context())
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
