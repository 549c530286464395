package zklock

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"flashsale/internal/lock"
)

// lease is a node in the line for a key.
type lease struct {
	*lock.Held
	*Lock
	parent, node string
	fence        int64 // transaction that made the node
}

// newLease starts the clock, from before the node was asked for.
func newLease(ctx context.Context, l *Lock, key, parent, node string, sent time.Time, turn *lock.Turn) *lease {
	e := &lease{Lock: l, parent: parent, node: node}
	e.Held = lock.Hold(ctx, lock.HeldOptions{
		Driver: packageName, Key: key, Sent: sent, Length: e.length(),
		Extend: e.extend, End: e.end, Timeout: l.Timeout,
		// Only the end of the whole session would free the lock otherwise.
		GiveUp: func() { l.tidy(parent, node) },
		Turn:   turn,
	})
	return e
}

func (l *lease) Fence() uint64 { return uint64(l.fence) }

// length is for how long a lease can be relied on.
func (l *lease) length() time.Duration { return l.ttl() - l.Drift }

// extend looks after the node. The session is kept alive by the client; each
// answer also says that it lived when the question was sent.
func (l *lease) extend(ctx context.Context) (time.Duration, error) {
	stat, err := l.look(ctx)
	if err == nil && stat == nil {
		err = lock.ErrLost
	}
	return l.length(), err
}

// look asks for the node, nil when it is no more.
func (l *lease) look(ctx context.Context) (*zk.Stat, error) {
	return call(ctx, l.session, func(conn *zk.Conn) (*zk.Stat, error) {
		there, stat, err := conn.Exists(l.parent + "/" + l.node)
		if !there {
			stat = nil
		}
		return stat, err
	})
}

// end deletes the node.
func (l *lease) end(ctx context.Context) (there bool, err error) {
	_, err = call(ctx, l.session, func(conn *zk.Conn) (struct{}, error) { return struct{}{}, conn.Delete(l.parent+"/"+l.node, -1) })
	if errors.Is(err, zk.ErrNoNode) {
		return false, nil
	}
	return err == nil, err
}
