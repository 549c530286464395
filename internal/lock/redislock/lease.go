package redislock

import (
	"context"
	"fmt"
	"time"

	"flashsale/internal/lock"
)

// lease is a won claim.
type lease struct {
	*claim
	*lock.Term
	fence uint64
	first any // see lock.First; nil: it has not run
}

// newLease starts the clock. onLoss may be nil.
func newLease(c *claim, won grant, onLoss func()) *lease {
	return &lease{claim: c, Term: lock.NewTerm(won.until, onLoss), fence: won.fence, first: won.first}
}

func (l *lease) Key() string   { return l.key }
func (l *lease) Fence() uint64 { return l.fence }

// end gives the lock back and says what became of it.
func (l *lease) end(ctx context.Context) error {
	l.Stop()
	return l.endUnsure(ctx, false)
}

// endUnsure is end after an attempt that may have succeeded, if before is true.
func (l *lease) endUnsure(ctx context.Context, before bool) error {
	lost := l.IsLost()
	deleted, unsure, err := l.release(ctx, l.lockKey, l.token)
	unsure = unsure || before
	switch {
	case lost:
		return l.ended(lock.ErrLost)
	case err != nil:
		return l.ended(lock.Unavailable(err))
	case deleted:
		return nil
	case unsure && time.Now().Before(l.Until()):
		return nil // it can't have ended by itself: the unanswered attempt deleted it
	default:
		l.Lose()
		return l.ended(lock.ErrLost)
	}
}

func (l *lease) ended(err error) error {
	return fmt.Errorf("redislock: release %q: %w", l.key, err)
}
