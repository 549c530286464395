package main

import (
	"context"
	"io"
	"time"

	"github.com/redis/go-redis/v9"

	"flashsale/internal/lock"
	"flashsale/internal/lock/redislock"
)

// patience is for how long a contender waits; nobody should have to.
const patience = 30 * time.Second

// locks are what is measured.
var locks = []contestant{
	{name: "watchdog", open: ours(newWatchdog), settings: "TTL 30 s, extended; queue in the process, pub/sub between"},
	{name: "setnx", open: ours(newSetNX), settings: "TTL 30 s; poll every 5-15 ms"},
	{name: "cohort", open: ours(newCohort), settings: "watchdog, handed on up to 64 times or 20 ms"},
	{name: "fair", open: ours(newFair), settings: "TTL 30 s, extended; queue in Redis, pub/sub"},
	{name: "redislock", peer: true, open: openRedislock, settings: "bsm/redislock v0.9.4: TTL 30 s, LinearBackoff(10 ms); pool 64"},
	{name: "redsync", peer: true, open: openRedsync, settings: "redsync v4.18.1: expiry 8 s (default), retry delay 10 ms; one pool of go-redis, size 64"},
	{name: "rueidislock", peer: true, open: openRueidislock, settings: "rueidis v1.0.79: KeyMajority 1, NoLoopTracking, client-side caching, as its README; validity 5 s (default)"},
}

// contestant is a lock and how it was set up.
type contestant struct {
	name, settings string
	peer           bool // not ours
	open           func(addr string) (locker, error)
}

// locker is what all of them can do.
type locker interface {
	acquire(ctx context.Context, key string) (held, error)
	close()
}

// held is a lock that was granted.
type held interface {
	release(ctx context.Context) error
	fence() uint64 // 0: it has none
}

func named(name string) (contestant, bool) {
	for _, l := range locks {
		if l.name == name {
			return l, true
		}
	}
	return contestant{}, false
}

// poolSize is that of each go-redis client: a connection for each contender.
const poolSize = 64

// flashsale is a lock of this module. Its client is set up as the module's own
// programs do it.
type flashsale struct {
	lock.Locker
	client *redis.Client
}

func ours(open func(*redis.Client, redislock.Options) (lock.Locker, error)) func(addr string) (locker, error) {
	return func(addr string) (locker, error) {
		client := redis.NewClient(&redis.Options{
			Addr: addr, PoolSize: poolSize, MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true,
		})
		l, err := open(client, redislock.Options{Wait: patience})
		return flashsale{l, client}, err
	}
}

func newWatchdog(client *redis.Client, options redislock.Options) (lock.Locker, error) {
	return redislock.NewWatchdog(client, options)
}

func newSetNX(client *redis.Client, options redislock.Options) (lock.Locker, error) {
	return redislock.NewSetNX(client, options)
}

func newCohort(client *redis.Client, options redislock.Options) (lock.Locker, error) {
	watchdog, err := redislock.NewWatchdog(client, options)
	return lock.NewCohort(watchdog, lock.CohortOptions{Wait: patience}), err
}

func newFair(client *redis.Client, options redislock.Options) (lock.Locker, error) {
	return redislock.NewFair(client, redislock.FairOptions{Options: options})
}

func (f flashsale) acquire(ctx context.Context, key string) (held, error) {
	lease, err := f.Acquire(ctx, key)
	if err != nil {
		return nil, err
	}
	return flashsaleLease{lease}, nil
}

func (f flashsale) close() {
	if c, ok := f.Locker.(io.Closer); ok {
		c.Close()
	}
	f.client.Close()
}

type flashsaleLease struct{ lock.Lease }

func (l flashsaleLease) release(ctx context.Context) error { return l.Release(ctx) }
func (l flashsaleLease) fence() uint64                     { return l.Fence() }
