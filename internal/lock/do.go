package lock

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// releaseTimeout bounds the release at the end of Do. It is generous: a variant
// bounds its own attempts more tightly.
const releaseTimeout = 5 * time.Second

// Do runs fn while it holds the lock of key.
//
// fn's context is cancelled, with cause ErrLost, as soon as the lease is lost;
// an error that fn returns because of that is ErrLost too. Otherwise Do returns
// what Acquire or fn returned and nothing else: what fn did is done, so neither
// a lease lost at the last moment nor a failed release turns it into a failure
// or hides its error. [Observe] sees both.
//
// The lock is released when fn returns, panics or ends its goroutine, even if
// ctx is cancelled by then.
func Do(ctx context.Context, locker Locker, key string, fn func(ctx context.Context, lease Lease) error) error {
	return DoThen(ctx, locker, key, nil, fn)
}

// DoThen is Do by AcquireThen, if there is a first step.
func DoThen(ctx context.Context, locker Locker, key string, first *Step, fn func(ctx context.Context, lease Lease) error) error {
	var lease Lease
	var err error
	if first == nil {
		lease, err = locker.Acquire(ctx, key)
	} else {
		lease, err = AcquireThen(ctx, locker, key, *first)
	}
	if err != nil {
		return err
	}
	defer release(ctx, lease)

	ctx, stop := withLoss(ctx, lease)
	defer stop()

	err = fn(ctx, lease)
	if errors.Is(err, context.Canceled) && context.Cause(ctx) == ErrLost && !errors.Is(err, ErrLost) {
		return fmt.Errorf("%w: %w", ErrLost, err)
	}
	return err
}

// withLoss derives a context that ends with the lease.
func withLoss(ctx context.Context, lease Lease) (context.Context, func()) {
	lost := lease.Lost()
	if lost == nil {
		return context.WithCancel(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-lost:
			cancel(ErrLost)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

func release(ctx context.Context, lease Lease) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	_ = lease.Release(ctx) // counted and logged by Observe
}
