package redislock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// sticky is a client that lends a connection: WAIT speaks of what was written
// on the same one.
type sticky interface{ Conn() *redis.Conn }

var errNotSticky = errors.New("redislock: option Replicas needs a client of one server, which can hold on to a connection (redis.NewClient, redis.NewFailoverClient)")

// acknowledged is a protocol whose grants count only when enough replicas have
// them. The fence is written before the lock, so that they have it too.
type acknowledged struct {
	protocol
	on       func(redis.Cmdable) protocol // the same one on a given connection
	client   sticky
	replicas int
	timeout  time.Duration
}

var _ protocol = acknowledged{}

func (a acknowledged) acquire(ctx context.Context, lockKey, fenceKey, token string) (answer, error) {
	conn := a.client.Conn()
	defer conn.Close()
	reply, err := a.on(conn).acquire(ctx, lockKey, fenceKey, token)
	if err != nil || !reply.granted {
		return reply, err
	}
	// Whatever goes wrong now, the lock is granted: it has to be given back. An
	// error reply to WAIT must not look as if nothing had been carried out.
	switch n, err := conn.Wait(ctx, a.replicas, a.timeout).Result(); {
	case err != nil:
		return answer{}, fmt.Errorf("wait for replicas: %v", err)
	case n < int64(a.replicas):
		return answer{}, fmt.Errorf("%d of %d replicas acknowledged the grant", n, a.replicas)
	}
	return reply, nil
}
