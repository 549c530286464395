package lock_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"flashsale/internal/lock"
	"flashsale/internal/lock/locktest"
	"flashsale/internal/lock/redislock"
	"flashsale/internal/servers/servertest"
)

// composed is a lock made of Watchdogs, and keeps what they promise.
type composed struct {
	name     string
	features locktest.Features
	build    func(t testing.TB, client *redis.Client, o redislock.Options) lock.Locker
}

var composedLocks = []composed{
	{"multi", locktest.Features{Excludes: true, AcrossProcesses: true, Expires: true, Extends: true}, func(t testing.TB, client *redis.Client, o redislock.Options) lock.Locker {
		return both{lock.NewMulti(watchdog(t, client, o), lock.MultiOptions{Wait: o.Wait})}
	}},
	{"reentrant", locktest.Features{Excludes: true, AcrossProcesses: true, Fence: true, Expires: true, Extends: true}, func(t testing.TB, client *redis.Client, o redislock.Options) lock.Locker {
		return &twice{Reentrant: lock.NewReentrant(watchdog(t, client, o))}
	}},
	{"adaptive", locktest.Features{Excludes: true, AcrossProcesses: true, Fence: true, Expires: true, Extends: true}, func(t testing.TB, client *redis.Client, o redislock.Options) lock.Locker {
		adaptive, err := lock.NewAdaptive(lock.AdaptiveOptions{
			Sizing: lock.Sizing{Min: cmp.Or(o.TTL, 5*time.Second), Max: o.TTL}, // the tests ask for it; 0 adapts
			Build: func(ttl time.Duration) (lock.Locker, error) {
				o := o
				o.TTL = ttl
				return redislock.NewWatchdog(client, o)
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = adaptive.Close() })
		return adaptive
	}},
}

func watchdog(t testing.TB, client *redis.Client, o redislock.Options) *redislock.Watchdog {
	t.Helper()
	w, err := redislock.NewWatchdog(client, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w
}

// both takes two keys in place of one.
type both struct{ *lock.Multi }

func (b both) Acquire(ctx context.Context, key string) (lock.Lease, error) {
	lease, err := b.Multi.Acquire(ctx, second(key), key)
	if err != nil {
		return nil, err
	}
	return firstNamed{lease, key}, nil
}

func second(key string) string { return key + "-second" }

// firstNamed is a lease of both keys that goes by the name of the first.
type firstNamed struct {
	lock.Lease
	key string
}

func (n firstNamed) Key() string { return n.key }

// twice acquires again what it has, under an owner of its own each time.
type twice struct {
	*lock.Reentrant
	owners atomic.Int64
}

func (w *twice) Acquire(ctx context.Context, key string) (lock.Lease, error) {
	owner := w.For(fmt.Sprint(w.owners.Add(1)))
	outer, err := owner.Acquire(ctx, key)
	if err != nil {
		return nil, err
	}
	inner, err := owner.Acquire(ctx, key)
	if err != nil {
		_ = outer.Release(ctx)
		return nil, err
	}
	return nested{inner, outer}, nil
}

type nested struct {
	lock.Lease
	outer lock.Lease
}

func (n nested) Release(ctx context.Context) error {
	_ = n.Lease.Release(ctx) // the outer one has the last word
	return n.outer.Release(ctx)
}

func connectTo(t testing.TB, addr string) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true, PoolSize: 70})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func TestLocksOfRedisLocksConform(t *testing.T) {
	addr := servertest.RedisServer(t).Addr()
	for _, c := range composedLocks {
		t.Run(c.name, func(t *testing.T) {
			locktest.Run(t, c.features, func(t *testing.T) locktest.Store {
				client := connectTo(t, addr)
				client.FlushAll(t.Context())
				return locktest.Store{
					New: func(t testing.TB, s locktest.Setting) lock.Locker {
						return c.build(t, connectTo(t, addr), redislock.Options{TTL: s.TTL, Wait: s.Wait, Drift: s.Drift})
					},
					Steal: func(t testing.TB, key string) {
						if n, err := client.Del(t.Context(), "lock:{"+key+"}", "lock:{"+second(key)+"}").Result(); n < 1 || err != nil {
							t.Errorf("steal: %d deleted, %v", n, err)
						}
					},
					Residue: func(t testing.TB, key string) []string { return residue(t, client, key, second(key)) },
				}
			})
		})
	}
}

// Of 10,000 cycles each key's one fence is left, with its TTL, and nothing else.
func TestManyCyclesOfLocksOfRedisLocksLeaveKeysBehind(t *testing.T) {
	addr := servertest.RedisServer(t).Addr()
	client := connectTo(t, addr)
	for _, c := range composedLocks {
		t.Run(c.name, func(t *testing.T) {
			client.FlushAll(t.Context())
			locktest.RunManyCycles(t, locktest.Store{
				New: func(t testing.TB, s locktest.Setting) lock.Locker {
					return c.build(t, connectTo(t, addr), redislock.Options{Wait: s.Wait})
				},
				Residue: func(t testing.TB, key string) []string { return residue(t, client, key, second(key)) },
			}, "item")
			if client.Exists(t.Context(), "fence:{item}").Val() == 0 {
				t.Error("it was never granted: the test shows nothing")
			}
		})
	}
}

// residue is every key but the fences of these, which have a TTL.
func residue(t testing.TB, client *redis.Client, keys ...string) []string {
	t.Helper()
	left, err := client.Keys(t.Context(), "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(left, func(name string) bool {
		fence := slices.ContainsFunc(keys, func(key string) bool { return name == "fence:{"+key+"}" })
		return fence && client.PTTL(t.Context(), name).Val() > time.Hour
	})
}

func TestLocksOfRedisLocksExcludeAcrossProcesses(t *testing.T) {
	const ttl = time.Second
	for _, c := range composedLocks {
		t.Run(c.name, func(t *testing.T) {
			locktest.Processes{
				Fenced: c.features.Fence, TTL: ttl,
				Store: func(t *testing.T) string { return servertest.RedisServer(t).Addr() },
				Open: func(t *testing.T, addr string) lock.Locker {
					return c.build(t, connectTo(t, addr), redislock.Options{TTL: ttl, Wait: locktest.Patience})
				},
			}.Run(t)
		})
	}
}
