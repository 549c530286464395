package etcdlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"flashsale/internal/lock"
)

// Lock is a lock in etcd: an entry bound to a lease, first come, first served.
//
// Protects against:  all that redislock.Watchdog does, and the loss of a server: a majority agreed to each grant.
// Still fails when:  the process is paused past the TTL, and writes before it has heard; etcd is put back to an older state, and with it the fences.
// Fixed by:          the fence, checked where the guarded value is written; a fence above the old ones after a restore.
type Lock struct {
	client *clientv3.Client
	dialed bool // the client is this lock's own
	Options
	queue lock.Queue
}

// New makes a Lock on a client, which stays the caller's to close.
func New(client *clientv3.Client, options Options) (*Lock, error) {
	if client == nil {
		return nil, errors.New("etcdlock: the client is nil")
	}
	options = options.withDefaults()
	if err := options.validate(); err != nil {
		return nil, err
	}
	return &Lock{client: client, Options: options}, nil
}

// Dial makes a Lock with a client of its own, that connects when it is first
// used. Close it when no one holds a lease any more.
func Dial(endpoints []string, options Options) (*Lock, error) {
	client, err := clientv3.New(clientv3.Config{
		Endpoints: endpoints, Logger: zap.NewNop(), // every error reaches a caller
		DialKeepAliveTime: 5 * time.Second, DialKeepAliveTimeout: 2 * time.Second, // notices a server that hangs
	})
	if err != nil {
		return nil, fmt.Errorf("etcdlock: %w", err)
	}
	l, err := New(client, options)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	l.dialed = true
	return l, nil
}

const packageName = "etcdlock"

var _ lock.Locker = (*Lock)(nil)

// Acquire waits for its turn in this process, then in etcd.
func (l *Lock) Acquire(ctx context.Context, key string) (lock.Lease, error) {
	deadline := time.Now().Add(l.Wait)
	turn, err := l.queue.Enter(ctx, key, l.Wait)
	if err != nil {
		return nil, fmt.Errorf("etcdlock: acquire %q: %w", key, err)
	}
	lease, err := l.lease(ctx, key, turn)
	if err != nil {
		turn.Leave()
		return nil, fmt.Errorf("etcdlock: acquire %q: %w", key, cmp.Or(lock.ContextError(ctx), err))
	}
	if err := lease.line(ctx, deadline); err != nil {
		err = cmp.Or(lock.ContextError(ctx), err)
		_ = lease.Release(ctx) // gives up the place in the line
		return nil, fmt.Errorf("etcdlock: acquire %q: %w", key, err)
	}
	return lease, nil
}

// Close ends the connection of a Lock that was dialed.
func (l *Lock) Close() error {
	if !l.dialed {
		return nil
	}
	return l.client.Close()
}

// lease makes one and starts to extend it; waiting may take longer than a TTL.
func (l *Lock) lease(ctx context.Context, key string, turn *lock.Turn) (*lease, error) {
	ctx, cancel := context.WithTimeout(ctx, l.Timeout)
	defer cancel()
	sent := time.Now()
	granted, err := l.client.Grant(ctx, int64(l.TTL/time.Second))
	if err != nil {
		return nil, lock.Unavailable(err)
	}
	return newLease(ctx, l, key, granted, sent, turn), nil
}

// line joins the line for the key, and returns when this lease is at its front.
func (l *lease) line(ctx context.Context, deadline time.Time) error {
	at, ahead, err := l.join(ctx)
	for {
		switch {
		case err != nil:
			return lock.Unavailable(err)
		case l.IsLost():
			return lock.Unavailable(errors.New("the lease ended while it waited"))
		case ahead == nil:
			return nil
		case !time.Now().Before(deadline):
			return lock.ErrNotAcquired
		}
		if err := l.awaitEnd(ctx, string(ahead.Key), at, deadline); err != nil {
			return err
		}
		at, ahead, err = l.ahead(ctx)
	}
}

// join puts the entry, and finds out in the same step who else is there.
func (l *lease) join(ctx context.Context) (at int64, ahead *mvccpb.KeyValue, err error) {
	bounded, cancel := context.WithTimeout(ctx, l.Timeout)
	defer cancel()
	reply, err := l.client.Txn(bounded).Then(
		clientv3.OpPut(l.entry, "", clientv3.WithLease(l.id)),
		clientv3.OpGet(l.name, clientv3.WithFirstCreate()...),
	).Commit()
	if err != nil {
		return 0, nil, err
	}
	l.fence = reply.Header.Revision // of the put
	first := reply.Responses[1].GetResponseRange().Kvs[0]
	if string(first.Key) == l.entry {
		return l.fence, nil, nil
	}
	return l.ahead(ctx)
}

// ahead is the entry right before this lease's, nil if there is none, at this
// revision.
func (l *lease) ahead(ctx context.Context) (at int64, ahead *mvccpb.KeyValue, err error) {
	ctx, cancel := context.WithTimeout(ctx, l.Timeout)
	defer cancel()
	reply, err := l.client.Get(ctx, l.name, append(clientv3.WithLastCreate(), clientv3.WithMaxCreateRev(int64(l.fence)-1))...)
	if err != nil {
		return 0, nil, err
	}
	if len(reply.Kvs) > 0 {
		ahead = reply.Kvs[0]
	}
	return reply.Header.Revision, ahead, nil
}

// awaitEnd returns when the entry may be gone, or waiting is over for another
// reason; its error is the context's alone. It asks again after Timeout: a watch
// may fail without a word, and one that can't be made blocks.
func (l *lease) awaitEnd(ctx context.Context, entry string, at int64, deadline time.Time) error {
	watching, stop := context.WithTimeout(clientv3.WithRequireLeader(ctx), min(l.Timeout, time.Until(deadline)))
	defer stop()
	events := l.client.Watch(watching, entry, clientv3.WithRev(at+1), clientv3.WithFilterPut())
	for {
		select {
		case reply, open := <-events:
			if !open || len(reply.Events) > 0 || reply.Err() != nil {
				return pause(watching, ctx, !open || reply.Err() != nil)
			}
		case <-l.Lost():
			return nil
		case <-watching.Done():
			return ctx.Err()
		}
	}
}

// pause keeps a watch that fails at once from being repeated at once.
func pause(watching, ctx context.Context, failed bool) error {
	if failed {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-watching.Done():
		}
	}
	return ctx.Err()
}
