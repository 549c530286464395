package redislock

import (
	"context"
	"fmt"
	"sync"
	"time"

	"flashsale/internal/lock"
)

// lease is a won claim. Unless it is given back or its end is moved, it ends by
// its own clock, a little before the server lets it go.
type lease struct {
	*claim
	fence  uint64
	until  time.Time
	expiry *time.Timer
	lost   chan struct{}
	lose   func() // closes lost, once
}

// newLease starts the clock. onLoss may be nil.
func newLease(c *claim, won grant, onLoss func()) *lease {
	l := &lease{claim: c, fence: won.fence, until: won.until, lost: make(chan struct{})}
	l.lose = sync.OnceFunc(func() {
		close(l.lost)
		if onLoss != nil {
			onLoss()
		}
	})
	l.expiry = time.AfterFunc(time.Until(won.until), l.lose)
	return l
}

func (l *lease) Key() string           { return l.key }
func (l *lease) Fence() uint64         { return l.fence }
func (l *lease) Lost() <-chan struct{} { return l.lost }

// end gives the lock back and says what became of it.
func (l *lease) end(ctx context.Context) error {
	l.expiry.Stop()
	lost := l.isLost()
	deleted, unsure, err := l.release(ctx, l.lockKey, l.token)
	switch {
	case lost:
		return l.ended(lock.ErrLost)
	case err != nil:
		return l.ended(unavailable(err))
	case deleted:
		return nil
	case unsure && time.Now().Before(l.until):
		return nil // it can't have ended by itself: the unanswered attempt deleted it
	default:
		l.lose()
		return l.ended(lock.ErrLost)
	}
}

func (l *lease) ended(err error) error {
	return fmt.Errorf("redislock: release %q: %w", l.key, err)
}

func (l *lease) isLost() bool {
	select {
	case <-l.lost:
		return true
	default:
		return false
	}
}
