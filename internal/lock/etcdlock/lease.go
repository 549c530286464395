package etcdlock

import (
	"context"
	"errors"
	"net/url"
	"strconv"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"flashsale/internal/lock"
)

// lease is a lease of etcd's and the entry that is bound to it.
type lease struct {
	*lock.Held
	*Lock
	name, entry string
	id          clientv3.LeaseID
	ttl         time.Duration // as etcd granted it
	fence       int64         // revision in which the entry was created
}

func newLease(ctx context.Context, l *Lock, key string, granted *clientv3.LeaseGrantResponse, sent time.Time, turn *lock.Turn) *lease {
	e := &lease{Lock: l, name: l.Prefix + url.PathEscape(key) + "/", id: granted.ID, ttl: time.Duration(granted.TTL) * time.Second}
	e.entry = e.name + strconv.FormatInt(int64(e.id), 16)
	e.Held = lock.Hold(ctx, lock.HeldOptions{
		Driver: packageName, Key: key, Sent: sent, Length: e.length(),
		Extend: e.extend, End: e.end, Timeout: l.Timeout, Turn: turn,
	})
	return e
}

func (l *lease) Fence() uint64 { return uint64(l.fence) }

// length is for how long a lease can be relied on.
func (l *lease) length() time.Duration { return l.ttl - l.Drift }

// extend asks once. The client's KeepAliveOnce repeats without a pause while
// etcd is away, and its KeepAlive doesn't say when it has asked, from which the
// new end has to be counted.
func (l *lease) extend(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, min(l.Timeout, l.ttl/3))
	defer cancel()
	stream, err := pb.NewLeaseClient(l.client.ActiveConnection()).LeaseKeepAlive(ctx)
	if err != nil {
		return 0, err
	}
	if err := stream.Send(&pb.LeaseKeepAliveRequest{ID: int64(l.id)}); err != nil {
		return 0, err
	}
	reply, err := stream.Recv()
	if err != nil {
		return 0, err
	}
	if reply.TTL <= 0 {
		return 0, lock.ErrLost
	}
	return l.length(), nil
}

// end revokes the lease, and with it the entry.
func (l *lease) end(ctx context.Context) (there bool, err error) {
	_, err = l.client.Revoke(ctx, l.id)
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return false, nil
	}
	return err == nil, err
}
