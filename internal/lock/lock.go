package lock

import (
	"context"
	"errors"
)

// The three ways in which a lock says no. They ask for different answers of the
// caller, so a variant never reports one for another, and each wraps its cause.
var (
	// ErrNotAcquired is contention: somebody else held the lock for as long as
	// this caller was ready to wait. Trying again later is right.
	ErrNotAcquired = errors.New("lock: held by another")

	// ErrLost says that the lease ended before its holder released it. Work
	// done since then was done without mutual exclusion.
	ErrLost = errors.New("lock: lease lost")

	// ErrUnavailable says that the store behind the lock could not be reached
	// or did not answer in time: nothing is known about who holds the lock.
	ErrUnavailable = errors.New("lock: store unavailable")
)

// Locker grants leases.
type Locker interface {
	// Acquire waits, for as long as the variant was told to, until the lock of
	// key is granted. Its error is ErrNotAcquired, ErrUnavailable or the
	// context's own, each possibly wrapped. After an error the caller holds
	// nothing: a grant whose answer was lost on the way has been given back.
	Acquire(ctx context.Context, key string) (Lease, error)
}

// Lease is a granted lock. Only who holds the Lease can release the lock.
type Lease interface {
	// Key is the key that was asked for.
	Key() string

	// Fence is a number that is larger than that of every earlier grant of the
	// same key, for a store to refuse what an outlived holder writes. It is 0
	// when the variant cannot offer one.
	Fence() uint64

	// Lost is closed as soon as the lease may have ended without a release.
	// It is nil when the variant cannot notice that.
	Lost() <-chan struct{}

	// Release gives the lock back, whether or not ctx was cancelled meanwhile:
	// a request that went away must not keep a lock. It is safe to call more than once; the
	// first call's answer is repeated. Its error is ErrLost when the lock was
	// no longer this holder's, ErrUnavailable when the store did not answer,
	// in which case the lock frees itself when its TTL has passed.
	Release(ctx context.Context) error
}
