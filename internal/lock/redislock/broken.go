package redislock

import (
	"context"
	"fmt"
	"sync"
	"time"

	"flashsale/internal/lock"
)

// Three locks of this package are broken on purpose, to be watched failing:
// SetNXBare, SetNXExpire and SetNXGetDel. This is what they have in common, and
// is sound, so that each one's file holds nothing but its fault.

// take sends what takes a lock.
type take func(ctx context.Context, lockKey string) (taken bool, err error)

// takeBy polls until the lock is taken or the wait is over. Commands outlive
// ctx: one that is cut off may have taken the lock all the same.
func (s *store) takeBy(ctx context.Context, key, lockKey string, take take, drop func(context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	fail := func(err error) error { return fmt.Errorf("redislock: acquire %q: %w", key, err) }
	deadline := time.Now().Add(s.Wait)
	for failures := 0; ; {
		taken, err := take(context.WithoutCancel(ctx), lockKey)
		if over := lock.ContextError(ctx); over != nil {
			if taken {
				_ = drop(ctx)
			}
			return fail(over)
		}
		left := time.Until(deadline)
		var next time.Duration
		switch {
		case taken:
			return nil
		case err == nil && left <= 0:
			return fail(lock.ErrNotAcquired)
		case err == nil:
			failures, next = 0, between(s.PollMin, s.PollMax)
		default:
			failures++
			if failures == attempts || left <= 0 {
				return fail(lock.Unavailable(err))
			}
			next = between(retryMin, retryMax)
		}
		if !pause(ctx, min(next, left), nil) {
			return fail(ctx.Err())
		}
	}
}

// brokenLease knows neither when it ends nor, but for its key, what it holds.
type brokenLease struct {
	key  string
	drop func(context.Context) error

	once sync.Once
	err  error
}

func (l *brokenLease) Key() string           { return l.key }
func (l *brokenLease) Fence() uint64         { return 0 }
func (l *brokenLease) Lost() <-chan struct{} { return nil }

// Release does what its lock takes for a release, once.
func (l *brokenLease) Release(ctx context.Context) error {
	l.once.Do(func() {
		if err := l.drop(ctx); err != nil {
			l.err = fmt.Errorf("redislock: release %q: %w", l.key, err)
		}
	})
	return l.err
}

// delete deletes the lock, whoever's it is.
func (s *store) delete(ctx context.Context, lockKey string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.ReleaseTimeout)
	defer cancel()
	if err := s.client.Del(ctx, lockKey).Err(); err != nil {
		return lock.Unavailable(err)
	}
	return nil
}
