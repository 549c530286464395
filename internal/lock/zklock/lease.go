package zklock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"flashsale/internal/lock"
)

// lease is a node in the line for a key.
type lease struct {
	*Lock
	key, parent, node string
	fence             int64 // transaction that made the node
	turn              *lock.Turn

	mu     sync.Mutex
	until  time.Time // the lease can be relied on so long
	expiry *time.Timer
	lost   chan struct{}
	lose   func() // closes lost, once

	stop    context.CancelFunc
	watched chan struct{} // closed when watch has ended

	once sync.Once
	err  error
}

// newLease starts the clock, from before the node was asked for.
func newLease(ctx context.Context, l *Lock, key, parent, node string, sent time.Time, turn *lock.Turn) *lease {
	e := &lease{Lock: l, key: key, parent: parent, node: node, turn: turn, lost: make(chan struct{}), watched: make(chan struct{})}
	e.lose = sync.OnceFunc(func() { close(e.lost); turn.Leave() })
	e.until = sent.Add(l.ttl() - l.Drift)
	e.expiry = time.AfterFunc(time.Until(e.until), e.lose)
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	e.stop = stop
	go e.watch(watching)
	return e
}

func (l *lease) Key() string           { return l.key }
func (l *lease) Fence() uint64         { return uint64(l.fence) }
func (l *lease) Lost() <-chan struct{} { return l.lost }

// Release stops looking after the node, and waits until that has ended; then it
// deletes it. The turn ends last, so that the next in line finds the lock free.
func (l *lease) Release(ctx context.Context) error {
	l.once.Do(func() {
		l.stop()
		<-l.watched
		l.expiry.Stop()
		if err := l.end(ctx); err != nil {
			l.err = fmt.Errorf("zklock: release %q: %w", l.key, err)
		}
		l.turn.Leave()
	})
	return l.err
}

// end deletes the node, in a bounded time that doesn't depend on ctx being
// alive. After that it is deleted in the background: only the end of the whole
// session would free the lock otherwise.
func (l *lease) end(ctx context.Context) error {
	lost := l.isLost()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.Timeout)
	defer cancel()
	unsure := false
	for {
		_, err := call(ctx, l.session, func(conn *zk.Conn) (struct{}, error) { return struct{}{}, conn.Delete(l.parent+"/"+l.node, -1) })
		gone := errors.Is(err, zk.ErrNoNode)
		switch {
		case lost && (err == nil || gone):
			return lock.ErrLost
		case err == nil, gone && unsure && time.Now().Before(l.validUntil()): // the unanswered attempt deleted it
			return nil
		case gone:
			l.lose()
			return lock.ErrLost
		}
		unsure = true
		select {
		case <-time.After(10*time.Millisecond + rand.N(20*time.Millisecond)):
		case <-ctx.Done():
			l.tidy(l.parent, l.node)
			if lost {
				return lock.ErrLost
			}
			return unavailable(err)
		}
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

// watch looks after the node every third of the session's timeout until it is
// stopped or the node is gone. Each answer also says that the session lived when
// the question was sent. An error isn't a loss: the next look may succeed, and
// expiry says when it is too late for that.
func (l *lease) watch(ctx context.Context) {
	defer close(l.watched)
	next := time.NewTimer(l.pause())
	defer next.Stop()
	for {
		select {
		case <-next.C:
		case <-l.lost:
			return
		case <-ctx.Done():
			return
		}
		stat, err := l.look(ctx)
		switch {
		case err != nil:
			retry := min(l.pause()/10, time.Second)
			next.Reset(retry/2 + rand.N(retry/2+1))
		case stat == nil:
			l.lose()
			return
		default:
			next.Reset(l.pause())
		}
	}
}

// pause is the time between two looks.
func (l *lease) pause() time.Duration { return max(l.ttl(), MinTTL) / 3 }

// look asks for the node, nil when it is no more, and moves the end of the lease
// when it is there.
func (l *lease) look(ctx context.Context) (*zk.Stat, error) {
	sent := time.Now()
	stat, err := call(ctx, l.session, func(conn *zk.Conn) (*zk.Stat, error) {
		there, stat, err := conn.Exists(l.parent + "/" + l.node)
		if !there {
			stat = nil
		}
		return stat, err
	})
	if err == nil && stat != nil {
		l.extend(sent.Add(l.ttl() - l.Drift))
	}
	return stat, err
}

func (l *lease) extend(until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if until.After(l.until) && !l.isLost() {
		l.until = until
		l.expiry.Reset(time.Until(until))
	}
}

func (l *lease) validUntil() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.until
}
