package redislock

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"flashsale/internal/lock"
)

// Watchdog is SetNX with a lease that is extended for as long as it is held,
// waiters that are woken by the release instead of polling, and a queue in each
// process, so that only the first of its waiters asks Redis.
//
// Protects against:  all that SetNX does, and work that takes longer than the TTL; a crowd of waiters.
// Still fails when:  the process is paused past the TTL, and writes before it has heard; Redis fails over to a replica that had not seen the grant.
// Fixed by:          the fence, checked where the guarded value is written.
type Watchdog struct {
	*store
	queue    lock.Queue
	listener *listener
}

// NewWatchdog makes a Watchdog on one Redis, or Redis Cluster. The client should
// be as for NewSetNX. Close it when no one acquires any more.
func NewWatchdog(client redis.UniversalClient, options Options) (*Watchdog, error) {
	store, err := newStore(client, options, polls{min: 50 * time.Millisecond, max: 150 * time.Millisecond})
	if err != nil {
		return nil, err
	}
	store.announces = true
	return &Watchdog{store: store, listener: newListener(client)}, nil
}

var _ lock.Locker = (*Watchdog)(nil)

// Acquire waits for its turn in this process, then for the lock.
func (w *Watchdog) Acquire(ctx context.Context, key string) (lock.Lease, error) {
	deadline := time.Now().Add(w.Wait)
	c := w.claim(key)
	turn, err := w.queue.Enter(ctx, key, w.Wait)
	if err != nil {
		return nil, c.giveUp(ctx, err)
	}
	won, err := c.win(ctx, deadline, w.listener)
	if err != nil {
		turn.Leave()
		return nil, err
	}

	lease := &watchdogLease{turn: turn, lease: newLease(c, won, turn.Leave), watched: make(chan struct{})}
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	lease.stop = stop
	go lease.watch(watching)
	return lease, nil
}

// Close ends the connection that waiters share. Leases stay as they are;
// waiters that are left poll.
func (w *Watchdog) Close() error {
	w.listener.close()
	return nil
}

type watchdogLease struct {
	*lease
	turn    *lock.Turn
	stop    context.CancelFunc
	watched chan struct{} // closed when watch has ended

	once sync.Once
	err  error
}

// Release stops the extending, and waits until it has: an extend under way must
// not come after the delete. The turn ends last, so that the next in line finds
// the lock free.
func (l *watchdogLease) Release(ctx context.Context) error {
	l.once.Do(func() {
		l.stop()
		<-l.watched
		l.err = l.end(ctx)
		l.turn.Leave()
	})
	return l.err
}

// watch extends the lease every third of its TTL until it is stopped or lost.
// An error isn't a loss: the next attempt may succeed, and expiry, counted from
// before the last successful one was sent, says when it is too late for that.
func (l *watchdogLease) watch(ctx context.Context) {
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
			l.until = sent.Add(l.validity())
			l.expiry.Reset(time.Until(l.until))
			next.Reset(l.TTL / 3)
		}
	}
}
