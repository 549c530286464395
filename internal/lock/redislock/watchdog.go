package redislock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"flashsale/internal/lock"
)

// Watchdog is SetNX with a lease that is extended for as long as it is held,
// waiters that are woken by the release instead of polling, and a queue in each
// process: its first waiter alone asks Redis, and the lease is then passed on from
// one to the next, up to 32 times or for 5 ms, each time with another fence.
//
// Protects against:  all that SetNX does, and work that takes longer than the TTL; a crowd of waiters.
// Still fails when:  the process is paused past the TTL, and writes before it has heard; Redis fails over to a replica that had not seen the grant, of which a lease that is passed on learns at its end.
// Fixed by:          the fence, checked where the guarded value is written.
type Watchdog struct {
	*store
	queue    lock.Queue
	listener *listener
}

// NewWatchdog makes a Watchdog on one Redis, or Redis Cluster. The client should
// be as for NewSetNX. Close it when no one acquires any more.
//
// One more key, named as the lock with ":line" behind it, exists while processes
// wait for each other.
func NewWatchdog(client redis.UniversalClient, options Options) (*Watchdog, error) {
	store, err := newStore(client, options, pollBeside)
	if err != nil {
		return nil, err
	}
	store.announces = true
	return &Watchdog{store: store, listener: newListener(client)}, nil
}

var _ lock.Locker = (*Watchdog)(nil)

// Acquire waits for its turn in this process, then for the lock, unless the
// holder before has handed it over.
func (w *Watchdog) Acquire(ctx context.Context, key string) (lock.Lease, error) {
	return w.acquire(ctx, key, nil)
}

// AcquireThen is Acquire with a first step in the exchange that grants the lock;
// see [lock.AcquireThen].
func (w *Watchdog) AcquireThen(ctx context.Context, key string, first lock.Step) (lock.Lease, error) {
	if first.On != w.client {
		return w.acquire(ctx, key, nil)
	}
	return w.acquire(ctx, key, &first)
}

func (w *Watchdog) acquire(ctx context.Context, key string, first *lock.Step) (lock.Lease, error) {
	deadline := time.Now().Add(w.Wait)
	c := w.claim(key)
	if list, able := w.protocol.(handsOver); able {
		c.list, c.first = list.granting(first), first
	}
	turn, err := w.queue.EnterWith(ctx, key, w.Wait, c)
	if err != nil {
		return nil, c.giveUp(ctx, err)
	}
	won, row, err := w.take(ctx, c, turn, deadline)
	if err != nil {
		turn.Leave()
		return nil, err
	}
	return &watchdogLease{watchedLease: watch(ctx, newLease(c, won, turn.Leave), nil), watchdog: w, turn: turn, row: row}, nil
}

type watchdogLease struct {
	*watchedLease
	watchdog *Watchdog
	turn     *lock.Turn
	row      row
	last     *last // goes with the release; nil: nothing
}

// First is the answer of the step that came with the lock; see [lock.First].
func (l *watchdogLease) First() (any, bool) { return l.first, l.first != nil }

// Release stops the extending, as every watched lease does, and hands the lock
// over or gives it back.
func (l *watchdogLease) Release(ctx context.Context) error {
	l.once.Do(func() { l.finish(ctx) })
	return l.err
}

// ReleaseAfter is Release with a last step in the same exchange; see
// [lock.ReleaseAfter].
func (l *watchdogLease) ReleaseAfter(ctx context.Context, step lock.Step) (any, error) {
	protocol, usual := l.protocol.(tokens)
	switch {
	case !usual || step.On != l.client:
		return nil, errors.ErrUnsupported
	case l.IsLost():
		return nil, l.ended(lock.ErrLost)
	}
	last := &last{step: step, err: errReleased}
	l.once.Do(func() {
		l.last, protocol.last = last, last
		l.store = l.speaking(protocol)
		l.finish(ctx)
	})
	return last.result()
}

var errReleased = fmt.Errorf("redislock: released already: %w", lock.ErrLost)

func (l *watchdogLease) finish(ctx context.Context) {
	l.keeper.Stop()
	l.Stop()
	var done bool
	if done, l.err = l.handOver(ctx); !done {
		l.err = l.endUnsure(ctx, false)
	}
	l.turn.Leave()
}

// Close ends the connection that waiters share. Leases stay as they are;
// waiters that are left poll.
func (w *Watchdog) Close() error {
	w.listener.close()
	return nil
}
