package main

import (
	"context"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

// The peers, each used as its README shows it. What a README leaves open is set
// to what serves a crowd of waiters: a retry every 10 ms, for redislock, which
// doesn't retry by default, and for redsync, which does every 50 to 250 ms.
const (
	peerRetry = 10 * time.Millisecond
	peerTTL   = 30 * time.Second // redislock's; the others have a default
)

// unfenced is a lock without a fence.
type unfenced func(ctx context.Context) error

func (u unfenced) release(ctx context.Context) error { return u(ctx) }
func (u unfenced) fence() uint64                     { return 0 }

type bsm struct {
	client *redis.Client
	*redislock.Client
}

func openRedislock(addr string) (locker, error) {
	client := redis.NewClient(&redis.Options{Addr: addr, PoolSize: poolSize})
	return bsm{client, redislock.New(client)}, nil
}

func (b bsm) acquire(ctx context.Context, key string) (held, error) {
	l, err := b.Obtain(ctx, key, peerTTL, &redislock.Options{RetryStrategy: redislock.LinearBackoff(peerRetry)})
	if err != nil {
		return nil, err
	}
	return unfenced(l.Release), nil
}

func (b bsm) close() { b.client.Close() }

type sync4 struct {
	client *redis.Client
	*redsync.Redsync
}

func openRedsync(addr string) (locker, error) {
	client := redis.NewClient(&redis.Options{Addr: addr, PoolSize: poolSize})
	return sync4{client, redsync.New(goredis.NewPool(client))}, nil
}

func (s sync4) acquire(ctx context.Context, key string) (held, error) {
	mutex := s.NewMutex(key, redsync.WithRetryDelay(peerRetry), redsync.WithTries(int(patience/peerRetry)))
	if err := mutex.LockContext(ctx); err != nil {
		return nil, err
	}
	return unfenced(func(ctx context.Context) error {
		_, err := mutex.UnlockContext(ctx)
		return err
	}), nil
}

func (s sync4) close() { s.client.Close() }

type rueidisLocker struct{ rueidislock.Locker }

func openRueidislock(addr string) (locker, error) {
	l, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption:   rueidis.ClientOption{InitAddress: []string{addr}},
		KeyMajority:    1,
		NoLoopTracking: true,
	})
	return rueidisLocker{l}, err
}

func (r rueidisLocker) acquire(ctx context.Context, key string) (held, error) {
	_, cancel, err := r.WithContext(ctx, key)
	if err != nil {
		return nil, err
	}
	return unfenced(func(context.Context) error { cancel(); return nil }), nil // it waits for the delete
}

func (r rueidisLocker) close() { r.Close() }
