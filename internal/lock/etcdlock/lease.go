package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"flashsale/internal/lock"
)

// lease is a lease of etcd's and the entry that is bound to it.
type lease struct {
	*Lock
	key, name, entry string
	id               clientv3.LeaseID
	ttl              time.Duration // as etcd granted it
	fence            int64         // revision in which the entry was created
	turn             *lock.Turn

	until  time.Time // the lease can be relied on so long
	expiry *time.Timer
	lost   chan struct{}
	lose   func() // closes lost, once

	stop    context.CancelFunc
	watched chan struct{} // closed when watch has ended

	once sync.Once
	err  error
}

func newLease(ctx context.Context, l *Lock, key string, granted *clientv3.LeaseGrantResponse, sent time.Time, turn *lock.Turn) *lease {
	e := &lease{
		Lock: l, key: key, name: l.Prefix + url.PathEscape(key) + "/", id: granted.ID, ttl: time.Duration(granted.TTL) * time.Second, turn: turn,
		lost: make(chan struct{}), watched: make(chan struct{}),
	}
	e.entry = entryOf(e.name, e.id)
	e.lose = sync.OnceFunc(func() { close(e.lost); turn.Leave() })
	e.until = sent.Add(e.ttl - l.Drift)
	e.expiry = time.AfterFunc(time.Until(e.until), e.lose)
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	e.stop = stop
	go e.watch(watching)
	return e
}

func (l *lease) Key() string           { return l.key }
func (l *lease) Fence() uint64         { return uint64(l.fence) }
func (l *lease) Lost() <-chan struct{} { return l.lost }

// Release stops the extending, and waits until it has; then it ends the lease,
// and with it the entry. The turn ends last, so that the next in line finds the
// lock free.
func (l *lease) Release(ctx context.Context) error {
	l.once.Do(func() {
		l.stop()
		<-l.watched
		l.expiry.Stop()
		if err := l.end(ctx); err != nil {
			l.err = fmt.Errorf("etcdlock: release %q: %w", l.key, err)
		}
		l.turn.Leave()
	})
	return l.err
}

// end revokes the lease, in a bounded time that doesn't depend on ctx being
// alive. If that fails, the lock frees itself when its TTL has passed.
func (l *lease) end(ctx context.Context) error {
	lost := l.isLost()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.Timeout)
	defer cancel()
	unsure := false
	for {
		_, err := l.client.Revoke(ctx, l.id)
		gone := errors.Is(err, rpctypes.ErrLeaseNotFound)
		switch {
		case lost && (err == nil || gone):
			return lock.ErrLost
		case err == nil, gone && unsure && time.Now().Before(l.until): // the unanswered attempt ended it
			return nil
		case gone:
			l.lose()
			return lock.ErrLost
		}
		unsure = true
		select {
		case <-time.After(10*time.Millisecond + rand.N(20*time.Millisecond)):
		case <-ctx.Done():
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

// watch extends the lease every third of its TTL until it is stopped or lost.
// An error isn't a loss: the next attempt may succeed, and expiry, counted from
// before the last successful one was sent, says when it is too late for that.
func (l *lease) watch(ctx context.Context) {
	defer close(l.watched)
	retry := min(l.ttl/30, time.Second)
	next := time.NewTimer(l.ttl / 3)
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
		alive, err := l.extend(ctx)
		switch {
		case err != nil:
			next.Reset(retry/2 + rand.N(retry/2))
		case !alive:
			l.lose()
			return
		default:
			l.until = sent.Add(l.ttl - l.Drift)
			l.expiry.Reset(time.Until(l.until))
			next.Reset(l.ttl / 3)
		}
	}
}

// extend asks once; false when the lease is no more. The client's KeepAliveOnce
// repeats without a pause while etcd is away, and its KeepAlive doesn't say when
// it has asked, from which the new end has to be counted.
func (l *lease) extend(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, min(l.Timeout, l.ttl/3))
	defer cancel()
	stream, err := pb.NewLeaseClient(l.client.ActiveConnection()).LeaseKeepAlive(ctx)
	if err != nil {
		return false, err
	}
	if err := stream.Send(&pb.LeaseKeepAliveRequest{ID: int64(l.id)}); err != nil {
		return false, err
	}
	reply, err := stream.Recv()
	if err != nil {
		return false, err
	}
	return reply.TTL > 0, nil
}
