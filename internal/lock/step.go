package lock

import (
	"context"
	"errors"
)

// Step is what a holder does in the store that keeps the lock, when that is also
// the store of what the lock guards.
type Step struct {
	On     any    // the store, as the variant knows it: for those of redislock, the client
	Script string // in the store's language: for Redis, the body of a function of KEYS and ARGV
	Keys   []string
	Args   []any
}

// AcquireThen is locker.Acquire with the holder's first step in the exchange that
// grants the lock, where locker can do that: the step comes after the grant, and
// only if there is one, with the fence of the grant before its Args. Whether it has
// run is First's to say of the lease; if not, it is left to the caller.
//
// Whoever passes the lock on may run it, in this process or another. It may run
// again when no answer came, under the same fence.
func AcquireThen(ctx context.Context, locker Locker, key string, first Step) (Lease, error) {
	if l, ok := locker.(interface {
		AcquireThen(context.Context, string, Step) (Lease, error)
	}); ok {
		return l.AcquireThen(ctx, key, first)
	}
	return locker.Acquire(ctx, key)
}

// First is what the first step answered that came with this lease, and whether it
// has run; see AcquireThen. A step that failed has not.
func First(lease Lease) (answer any, ran bool) {
	if l, ok := lease.(interface{ First() (any, bool) }); ok {
		return l.First()
	}
	return nil, false
}

// ReleaseAfter runs a holder's last step and gives the lock back after it, in one
// exchange with the store in place of two: the step comes first, and the release
// whatever becomes of the step. The step is run without a look at the lock, as any
// other write of the holder: what keeps an outlived holder's out is the fence. It
// may be sent again when no answer came, so it has to be harmless when it runs twice.
//
// It returns what the step answered. Beside errors of the store, which are the
// driver's own, its error is ErrLost when the lease had ended, and
// errors.ErrUnsupported when this lease can't do it, or not there: then nothing
// was done. What the release came to is Release's to say, which still has to be
// called.
func ReleaseAfter(ctx context.Context, lease Lease, last Step) (answer any, err error) {
	if l, ok := lease.(interface {
		ReleaseAfter(context.Context, Step) (any, error)
	}); ok {
		return l.ReleaseAfter(ctx, last)
	}
	return nil, errors.ErrUnsupported
}
