package fallback_test

import (
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"flashsale/internal/lock"
	"flashsale/internal/lock/fallback"
	"flashsale/internal/lock/locktest"
	"flashsale/internal/lock/redislock"
	"flashsale/internal/servers/servertest"
)

var modes = map[string]fallback.Mode{"reject": fallback.Reject, "degrade": fallback.Degrade}

// While the store is there, both modes are the lock that they stand in front of.
func TestClosedConforms(t *testing.T) {
	for name, mode := range modes {
		t.Run(name, func(t *testing.T) {
			features := locktest.Features{
				Excludes: true, AcrossProcesses: true, Fence: true, Expires: true, Extends: true,
				LeastTTL: time.Second, // how well a short lease is extended on a busy machine is watchdog's to show
			}
			locktest.Run(t, features, func(t *testing.T) locktest.Store {
				addr := servertest.RedisServer(t).Addr()
				client := connect(t, addr)
				return locktest.Store{
					New: func(t testing.TB, s locktest.Setting) lock.Locker {
						below := watchdog(t, addr, redislock.Options{TTL: s.TTL, Wait: s.Wait, Drift: s.Drift})
						return build(t, below, fallback.Options{Mode: mode, Wait: s.Wait})
					},
					Steal: func(t testing.TB, key string) {
						if n, err := client.Del(t.Context(), "lock:{"+key+"}").Result(); n != 1 || err != nil {
							t.Errorf("steal: %d deleted, %v", n, err)
						}
					},
					Residue: func(t testing.TB, key string) []string {
						left, err := client.Keys(t.Context(), "*").Result()
						if err != nil {
							t.Fatal(err)
						}
						return slices.DeleteFunc(left, func(name string) bool {
							return name == "fence:{"+key+"}" && client.PTTL(t.Context(), name).Val() > 0
						})
					},
				}
			})
		})
	}
}

// While it is open, Degrade is the lock of one process, without a fence.
func TestDegradedConforms(t *testing.T) {
	locktest.Run(t, locktest.Features{Excludes: true}, func(*testing.T) locktest.Store {
		return locktest.Store{New: func(t testing.TB, s locktest.Setting) lock.Locker {
			down := &store{answer: errDown}
			f := build(t, down, fallback.Options{Mode: fallback.Degrade, Wait: s.Wait, Failures: 1, Pause: time.Hour})
			lease, err := f.Acquire(t.Context(), "opens the breaker")
			if err != nil {
				t.Fatal(err)
			}
			release(t, lease)
			return f
		}}
	})
}

func connect(t testing.TB, addr string) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{
		Addr: addr, MaxRetries: -1, ContextTimeoutEnabled: true, PoolSize: 70,
		DialTimeout: time.Second, ReadTimeout: 300 * time.Millisecond, DialerRetries: 1,
	})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func watchdog(t testing.TB, addr string, options redislock.Options) *redislock.Watchdog {
	t.Helper()
	w, err := redislock.NewWatchdog(connect(t, addr), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w
}
