package lock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"flashsale/internal/lock"
)

// The work runs while the lock is held, and hands the fence on to whatever it
// writes to.
func ExampleDo() {
	locker := lock.NewLocal(lock.LocalOptions{Wait: 500 * time.Millisecond})

	err := lock.Do(context.Background(), locker, "sale-1", func(ctx context.Context, lease lock.Lease) error {
		fmt.Println("selling under the lock of", lease.Key())
		return nil
	})
	fmt.Println(err)
	// Output:
	// selling under the lock of sale-1
	// <nil>
}

// Contention is an answer of its own: somebody else is at work, try later.
func ExampleTryOnce() {
	locker := lock.NewLocal(lock.LocalOptions{Wait: lock.TryOnce})
	ctx := context.Background()

	lease, _ := locker.Acquire(ctx, "sale-1")
	_, err := locker.Acquire(ctx, "sale-1")
	fmt.Println(errors.Is(err, lock.ErrNotAcquired))

	_ = lease.Release(ctx)
	_, err = locker.Acquire(ctx, "sale-1")
	fmt.Println(err)
	// Output:
	// true
	// <nil>
}

// Metrics and logs are put around a lock, not into it.
func ExampleObserve() {
	locker := lock.Observe(lock.None{}, lock.Observer{
		Acquired: func(key string, wait time.Duration, outcome lock.Outcome, err error) {
			fmt.Println(key, outcome)
		},
		ReleaseFailed: func(key string, err error) { fmt.Println(key, "stays locked until its TTL has passed:", err) },
	})
	_ = lock.Do(context.Background(), locker, "sale-1", func(context.Context, lock.Lease) error { return nil })
	// Output: sale-1 acquired
}
