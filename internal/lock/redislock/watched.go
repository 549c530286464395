package redislock

import (
	"context"
	"sync"
	"time"

	"flashsale/internal/lock"
)

// watchedLease is a lease that is extended for as long as it is held.
type watchedLease struct {
	*lease
	keeper *lock.Keeper
	after  func() // is called at the end of the release

	once sync.Once
	err  error
}

// watch starts to extend a lease. after is called once it has been released.
func watch(ctx context.Context, l *lease, after func()) *watchedLease {
	w := &watchedLease{lease: l, after: after}
	w.keeper = w.KeepLater(ctx, w.validity(), w.prolong)
	return w
}

// Release stops the extending, and waits until it has: an extend under way must
// not come after the delete. What comes after finds the lock free.
func (l *watchedLease) Release(ctx context.Context) error {
	l.once.Do(func() {
		l.keeper.Stop()
		l.err = l.end(ctx)
		l.after()
	})
	return l.err
}

// prolong extends the lease once.
func (l *watchedLease) prolong(ctx context.Context) (time.Duration, error) {
	ours, err := l.extend(ctx, l.lockKey, l.token)
	if err == nil && !ours {
		err = lock.ErrLost
	}
	return l.validity(), err
}
