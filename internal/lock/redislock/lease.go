package redislock

import (
	"context"
	"fmt"
	"sync"
	"time"

	"flashsale/internal/lock"
)

// term is how long a lease lasts. Unless it is stopped or its end is moved, it
// ends by its own clock, a little before the server lets the lock go.
type term struct {
	until  time.Time
	expiry *time.Timer
	lost   chan struct{}
	lose   func() // closes lost, once
}

// newTerm starts the clock. onLoss may be nil.
func newTerm(until time.Time, onLoss func()) *term {
	t := &term{until: until, lost: make(chan struct{})}
	t.lose = sync.OnceFunc(func() {
		close(t.lost)
		if onLoss != nil {
			onLoss()
		}
	})
	t.expiry = time.AfterFunc(time.Until(until), t.lose)
	return t
}

// prolong moves the end, unless it has come.
func (t *term) prolong(until time.Time) {
	t.until = until
	t.expiry.Reset(time.Until(until))
}

func (t *term) Lost() <-chan struct{} { return t.lost }

func (t *term) isLost() bool {
	select {
	case <-t.lost:
		return true
	default:
		return false
	}
}

// lease is a won claim.
type lease struct {
	*claim
	*term
	fence uint64
}

// newLease starts the clock. onLoss may be nil.
func newLease(c *claim, won grant, onLoss func()) *lease {
	return &lease{claim: c, term: newTerm(won.until, onLoss), fence: won.fence}
}

func (l *lease) Key() string   { return l.key }
func (l *lease) Fence() uint64 { return l.fence }

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
