package redislock

import (
	"context"
	"sync"
	"time"
)

// watchedLease is a lease that is extended for as long as it is held.
type watchedLease struct {
	*lease
	stop    context.CancelFunc
	watched chan struct{} // closed when extending has ended
	after   func()        // is called at the end of the release

	once sync.Once
	err  error
}

// watch starts to extend a lease. after is called once it has been released.
func watch(ctx context.Context, l *lease, after func()) *watchedLease {
	w := &watchedLease{lease: l, watched: make(chan struct{}), after: after}
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	w.stop = stop
	go w.keep(watching)
	return w
}

// Release stops the extending, and waits until it has: an extend under way must
// not come after the delete. What comes after finds the lock free.
func (l *watchedLease) Release(ctx context.Context) error {
	l.once.Do(func() {
		l.stop()
		<-l.watched
		l.err = l.end(ctx)
		l.after()
	})
	return l.err
}

// keep extends the lease every third of its TTL until it is stopped or lost.
// An error isn't a loss: the next attempt may succeed, and expiry, counted from
// before the last successful one was sent, says when it is too late for that.
func (l *watchedLease) keep(ctx context.Context) {
	defer close(l.watched)
	retry := min(max(l.TTL/30, 2*time.Millisecond), time.Second)
	next := time.NewTimer(l.TTL / 3)
	defer next.Stop()
	for {
		select {
		case <-next.C:
		case <-l.lost:
			return
		case <-ctx.Done():
			return
		}
		sent := time.Now()
		ours, err := l.extend(ctx, l.lockKey, l.token)
		switch {
		case err != nil:
			next.Reset(between(retry/2, retry))
		case !ours:
			l.lose()
			return
		default:
			l.prolong(sent.Add(l.validity()))
			next.Reset(l.TTL / 3)
		}
	}
}
