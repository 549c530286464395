package redislock

import (
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"flashsale/internal/lock"
	"flashsale/internal/servers"
	"flashsale/internal/servers/servertest"
)

// realRedis is a Redis of the test's own, so that it may flush it.
func realRedis(t testing.TB) string {
	t.Helper()
	return servertest.RedisServer(t).Addr()
}

// miniRedis is the embedded stand-in.
func miniRedis(t testing.TB) string {
	t.Helper()
	server := servers.EmbeddedRedis()
	start(t, server)
	t.Cleanup(server.Kill)
	return server.Addr()
}

func start(t testing.TB, server servers.Server) {
	t.Helper()
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// freeAddr is an address at which nobody listens.
func freeAddr(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func connect(t testing.TB, addr string) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{
		Addr: addr, MaxRetries: -1, ContextTimeoutEnabled: true, PoolSize: 70,
		DialTimeout: time.Second, ReadTimeout: time.Second, DialerRetries: 1,
	})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// eventually waits for what a server or another goroutine is about to do.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("still not: %s", what)
		}
	}
}

func buildSetNX(t testing.TB, client *redis.Client, options Options) lock.Locker {
	return built(t, NewSetNX)(client, options)
}

func buildWatchdog(t testing.TB, client *redis.Client, options Options) lock.Locker {
	return built(t, NewWatchdog)(client, options)
}

func buildCohort(t testing.TB, client *redis.Client, options Options) lock.Locker {
	return built(t, func(c redis.UniversalClient, o Options) (*lock.Cohort, error) {
		below, err := NewWatchdog(c, o)
		return lock.NewCohort(below, lock.CohortOptions{Wait: o.Wait}), err
	})(client, options)
}

func buildFunction(t testing.TB, client *redis.Client, options Options) lock.Locker {
	return built(t, NewFunction)(client, options)
}

// hasFunctions is false for a stand-in.
func hasFunctions(t testing.TB, client *redis.Client) bool {
	_, err := client.FunctionList(t.Context(), redis.FunctionListQuery{}).Result()
	return err == nil
}

func buildFair(t testing.TB, client *redis.Client, options Options) lock.Locker {
	return built(t, func(c redis.UniversalClient, o Options) (*Fair, error) {
		return NewFair(c, FairOptions{Options: o})
	})(client, options)
}

func buildBare(t testing.TB, client *redis.Client, options Options) lock.Locker {
	return built(t, NewSetNXBare)(client, options)
}

func buildExpire(t testing.TB, client *redis.Client, options Options) lock.Locker {
	return built(t, NewSetNXExpire)(client, options)
}

func buildGetDel(t testing.TB, client *redis.Client, options Options) lock.Locker {
	return built(t, NewSetNXGetDel)(client, options)
}

// built is a constructor that can't fail and whose lock is closed by t.
func built[L lock.Locker](t testing.TB, construct func(redis.UniversalClient, Options) (L, error)) func(*redis.Client, Options) lock.Locker {
	return func(client *redis.Client, options Options) lock.Locker {
		t.Helper()
		l, err := construct(client, options)
		if err != nil {
			t.Fatal(err)
		}
		if c, ok := lock.Locker(l).(io.Closer); ok {
			t.Cleanup(func() { _ = c.Close() })
		}
		return l
	}
}

// newSetNX and newWatchdog make a lock with a client of its own, as a process
// of its own would.
func newSetNX(t testing.TB, addr string, options Options) *SetNX {
	t.Helper()
	return buildSetNX(t, connect(t, addr), options).(*SetNX)
}

func newWatchdog(t testing.TB, addr string, options Options) *Watchdog {
	t.Helper()
	return buildWatchdog(t, connect(t, addr), options).(*Watchdog)
}

// residue lists the keys that there are, apart from the fence of key, provided
// that it has its TTL.
func residue(t testing.TB, client *redis.Client, key string) []string {
	t.Helper()
	left, err := client.Keys(t.Context(), "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	_, fenceKey := defaultKeys(key)
	return slices.DeleteFunc(left, func(name string) bool {
		ttl := client.PTTL(t.Context(), name).Val()
		return name == fenceKey && ttl > fenceTTL-time.Hour && ttl <= fenceTTL
	})
}
