//go:build unix

package fallback_test

import (
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"flashsale/internal/lock"
	"flashsale/internal/lock/fallback"
	"flashsale/internal/lock/locktest"
	"flashsale/internal/lock/redislock"
	"flashsale/internal/servers"
	"flashsale/internal/servers/servertest"
)

// bound is how long one question may take while Redis is away: the client's
// timeouts, a grant that is given back, and a busy machine.
const bound = 10 * time.Second

// outages is a Redis that refuses connections, and one that takes them and
// answers nothing.
func outages(t *testing.T, test func(t *testing.T, addr string, away, back func())) {
	t.Run("killed", func(t *testing.T) {
		server := servertest.RedisServer(t)
		test(t, server.Addr(), server.Kill, func() {
			if err := server.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
	})
	t.Run("hangs", func(t *testing.T) {
		server := servertest.RedisServer(t)
		if !server.Real() {
			t.Skip("needs redis-server")
		}
		pid := processOf(t, server)
		signal := func(s syscall.Signal) {
			if err := syscall.Kill(pid, s); err != nil {
				t.Error(err)
			}
		}
		t.Cleanup(func() { signal(syscall.SIGCONT) })
		test(t, server.Addr(), func() { signal(syscall.SIGSTOP) }, func() { signal(syscall.SIGCONT) })
	})
}

func processOf(t testing.TB, server servers.Server) int {
	t.Helper()
	info, err := connect(t, server.Addr()).Info(t.Context(), "server").Result()
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(info, "process_id:")
	pid, err := strconv.Atoi(strings.TrimSpace(strings.SplitN(rest, "\n", 2)[0]))
	if err != nil || pid <= 1 {
		t.Fatalf("process %d: %v", pid, err)
	}
	return pid
}

func TestRedisIsAwayAndBlocksEverybody(t *testing.T) {
	for name, mode := range modes {
		t.Run(name, func(t *testing.T) {
			outages(t, func(t *testing.T, addr string, away, back func()) {
				below := watchdog(t, addr, redislock.Options{TTL: time.Second, Wait: bound})
				s := &store{Locker: below}
				options := fallback.Options{Mode: mode, Failures: 2, Pause: time.Hour}
				f := build(t, s, options)
				options.Pause = 1 // each caller after a failure is a probe
				eager := build(t, below, options)

				release(t, acquire(t, f))
				before, err := eager.Acquire(t.Context(), "held across")
				if err != nil {
					t.Fatal(err)
				}
				away()

				for i := range 100 {
					begin := time.Now()
					lease, err := f.Acquire(t.Context(), "item")
					if took := time.Since(begin); took > bound {
						t.Fatalf("answered after %v", took)
					}
					if mode == fallback.Degrade && i > 0 {
						if err != nil || lease.Fence() != 0 {
							t.Fatalf("got %v, want a lease without a fence", err)
						}
						release(t, lease)
						continue
					}
					locktest.Is(t, err, lock.ErrUnavailable)
				}
				if s.asked != 3 || f.State() != fallback.Open {
					t.Errorf("Redis was asked %d times, want 3; the breaker is %s", s.asked, f.State())
				}
				for range 2 {
					if lease, err := eager.Acquire(t.Context(), "item"); err == nil {
						release(t, lease)
					}
				}
				if eager.State() == fallback.Closed {
					t.Error("two failures didn't open the breaker")
				}
				if before.Fence() == 0 {
					t.Error("the lease of before has lost its fence")
				}

				back()
				lease := acquire(t, eager)
				if lease.Fence() == 0 || eager.State() != fallback.Closed {
					t.Errorf("fence %d, the breaker is %s", lease.Fence(), eager.State())
				}
				release(t, lease)
				_ = before.Release(t.Context()) // its TTL may have passed
			})
		})
	}
}
