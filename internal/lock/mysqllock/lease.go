package mysqllock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"flashsale/internal/lock"
)

// lease is an open transaction that has the row.
type lease struct {
	*Row
	key, name string
	conn      *sql.Conn
	fence     int64
	turn      *lock.Turn

	expiry *time.Timer
	lost   chan struct{}
	lose   func() // closes lost, once

	stop    context.CancelFunc
	watched chan struct{} // closed when watch has ended

	once sync.Once
	err  error
}

// start begins to keep the connection alive.
func (l *lease) start(ctx context.Context, sent time.Time) {
	l.lost, l.watched = make(chan struct{}), make(chan struct{})
	l.lose = sync.OnceFunc(func() { close(l.lost); l.turn.Leave() })
	l.expiry = time.AfterFunc(time.Until(sent.Add(l.TTL-l.Drift)), l.lose)
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.stop = stop
	go l.watch(watching)
}

func (l *lease) Key() string           { return l.key }
func (l *lease) Fence() uint64         { return uint64(l.fence) }
func (l *lease) Lost() <-chan struct{} { return l.lost }

// Release stops the pings, and waits until they have ended; then it ends the
// transaction. The turn ends last, so that the next in line finds the row free.
func (l *lease) Release(ctx context.Context) error {
	l.once.Do(func() {
		l.stop()
		<-l.watched
		l.expiry.Stop()
		if err := l.end(ctx); err != nil {
			l.err = fmt.Errorf("mysqllock: release %q: %w", l.key, err)
		}
		l.turn.Leave()
	})
	return l.err
}

// end commits, in a bounded time that doesn't depend on ctx being alive. If that
// fails the connection is closed, which frees the row.
func (l *lease) end(ctx context.Context) error {
	lost := l.isLost()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.Timeout)
	defer cancel()
	_, err := l.conn.ExecContext(ctx, "COMMIT")
	switch {
	case err == nil && !lost:
		return l.conn.Close()
	case lost, !errors.Is(err, context.DeadlineExceeded): // the connection is no more, and was the lock
		l.lose()
		discard(l.conn)
		return lock.ErrLost
	default:
		discard(l.conn)
		return unavailable(err)
	}
}

func (l *lease) isLost() bool {
	select {
	case <-l.lost:
		return true
	default:
		return false
	}
}

// watch pings every third of the TTL until it is stopped or the lease is lost.
// One failure is the end: a ping without an answer costs the connection, and the
// connection is the lock.
func (l *lease) watch(ctx context.Context) {
	defer close(l.watched)
	next := time.NewTicker(l.TTL / 3)
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
		pinging, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(l.Timeout, l.TTL/3)) // a release must not cut one off
		_, err := l.conn.ExecContext(pinging, "DO 0")
		cancel()
		if err != nil {
			l.lose()
			return
		}
		l.expiry.Reset(time.Until(sent.Add(l.TTL - l.Drift)))
	}
}
