package redislock

import (
	"cmp"
	"net"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"flashsale/internal/lock"
)

// realRedis starts a redis-server of this test's own, or reuses dir's and port.
func realRedis(t testing.TB) string {
	t.Helper()
	s := &server{dir: t.TempDir(), addr: freeAddr(t)}
	s.start(t)
	t.Cleanup(s.kill)
	return s.addr
}

// server is a redis-server that a test may kill and start again.
type server struct {
	dir, addr string
	fsync     string // "always" for who counts on what was written just before a kill
	cmd       *exec.Cmd
}

func (s *server) start(t testing.TB) {
	t.Helper()
	_, port, _ := net.SplitHostPort(s.addr)
	fsync := cmp.Or(s.fsync, "everysec")
	s.cmd = exec.Command("redis-server", "--port", port, "--bind", "127.0.0.1", "--dir", s.dir,
		"--appendonly", "yes", "--appendfsync", fsync, "--save", "", "--maxmemory-policy", "noeviction")
	if err := s.cmd.Start(); err != nil {
		t.Fatalf("no redis-server, which these tests need (apt-get install redis-server): %v", err)
	}
	client := redis.NewClient(&redis.Options{Addr: s.addr, MaxRetries: -1})
	defer client.Close()
	eventually(t, "redis-server answers", func() bool { return client.Ping(t.Context()).Err() == nil })
}

func (s *server) kill() {
	_ = s.cmd.Process.Signal(os.Kill)
	_ = s.cmd.Wait()
}

func freeAddr(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func miniRedis(t testing.TB) string {
	t.Helper()
	m := miniredis.NewMiniRedis()
	m.ClockTTL(true)
	if err := m.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m.Addr()
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
	t.Helper()
	l, err := NewSetNX(client, options)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func buildWatchdog(t testing.TB, client *redis.Client, options Options) lock.Locker {
	t.Helper()
	l, err := NewWatchdog(client, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
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
