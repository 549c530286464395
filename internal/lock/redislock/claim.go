package redislock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"flashsale/internal/lock"
)

// claim is one caller's attempts to get one lock, all under the same token, so
// that a grant whose answer was lost is found again or given back.
type claim struct {
	*store
	key, lockKey, fenceKey string
	token                  string
	unsure                 bool       // an attempt may have been granted unseen, or given a place
	behind                 bool       // another process has just been given the lock: there is no use in asking before listening
	list                   handsOver  // nil: there is no list for those who listen
	listed                 bool       // the token may be in it
	first                  *lock.Step // goes with the grant; nil: nothing
}

// grant is what a claim is after.
type grant struct {
	granted bool
	fence   uint64
	until   time.Time // the lease can be relied on so long
	first   any       // what the step answered that came with it; nil: it has not run
}

var errLate = errors.New("granted too late to be of use")

func (s *store) claim(key string) *claim {
	c := &claim{store: s, key: key, token: s.names.next()}
	c.lockKey, c.fenceKey = s.Keys(key)
	return c
}

// win asks for the lock until it is granted or the wait is over, pausing as
// long as the options say or, with a listener, until a release is heard of.
// After an error the caller holds nothing.
func (c *claim) win(ctx context.Context, deadline time.Time, listener *listener) (grant, error) {
	var wake <-chan struct{}
	if c.behind && listener != nil {
		var leave func()
		wake, leave = listener.listen(c.lockKey, c.token)
		defer leave()
		select {
		case <-wake: // it asks now anyway
		default:
		}
	}
	for failures, refused := 0, 0; ; {
		won, held, err := c.ask(ctx, wake != nil)
		if over := lock.ContextError(ctx); over != nil { // also of a grant: nobody is there to use it
			return grant{}, c.giveUp(ctx, over)
		}
		left := time.Until(deadline)

		var next time.Duration
		switch {
		case err == nil && won.granted:
			return won, nil
		case err == nil && (left <= 0 || refused+1 == c.Tries):
			return grant{}, c.giveUp(ctx, lock.ErrNotAcquired)
		case err == nil:
			failures, refused = 0, refused+1
			next = between(c.PollMin, c.PollMax)
			if c.Tries > 0 {
				break // nothing cuts the pause short
			}
			if held >= 0 { // a holder that died releases nothing
				next = min(next, held+time.Millisecond)
			}
			if wake == nil && listener != nil {
				var leave func()
				wake, leave = listener.listen(c.lockKey, c.token)
				defer leave()
			}
		default:
			failures++
			if failures == attempts || left <= 0 {
				return grant{}, c.giveUp(ctx, lock.Unavailable(err))
			}
			next = between(retryMin, retryMax)
		}
		if !pause(ctx, min(next, left), wake) {
			return grant{}, c.giveUp(ctx, ctx.Err())
		}
	}
}

// ask makes one attempt. Its grant counts from before it was sent: the server
// began to count no earlier. Who listens can be given the lock.
func (c *claim) ask(ctx context.Context, listens bool) (won grant, held time.Duration, err error) {
	sent := time.Now()
	var reply answer
	switch {
	case c.list == nil:
		reply, err = c.acquire(ctx, c.lockKey, c.fenceKey, c.token)
	case listens:
		c.listed = true
		reply, err = c.list.enlist(ctx, c.lockKey, c.fenceKey, c.token)
	default:
		reply, err = c.list.acquire(ctx, c.lockKey, c.fenceKey, c.token)
	}
	c.unsure = c.unsure || reply.granted || reply.placed || err != nil && mayHaveRun(err)
	won = grant{granted: reply.granted, fence: reply.fence, until: sent.Add(c.validity()), first: reply.first}
	if reply.granted && !time.Now().Before(won.until) {
		return grant{}, 0, errLate
	}
	return won, reply.held, err
}

// giveUp ends the claim with err, and gives back what it may have been granted.
// If that fails too, the lock frees itself when its TTL has passed.
func (c *claim) giveUp(ctx context.Context, err error) error {
	if c.listed { // first, so that nobody gives it the lock after the release
		c.delist(ctx)
	}
	if c.unsure {
		c.release(ctx, c.lockKey, c.token)
	}
	return fmt.Errorf("redislock: acquire %q: %w", c.key, err)
}

// delist takes the claim out of the list. If that fails, whoever gives it the
// lock does so for a moment.
func (c *claim) delist(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.ReleaseTimeout)
	defer cancel()
	_ = c.list.delist(ctx, c.lockKey, c.token)
}
