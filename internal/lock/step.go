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
