//go:build unix

package e2e

import (
	"bufio"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"flashsale/internal/servers"
	"flashsale/internal/servers/servertest"
)

// redisBound is how long a buyer may wait for an answer while Redis is away:
// twice the API's timeout, the compensation of a lock, and a busy machine.
const redisBound = 10 * time.Second

// TestRedisIsAwayUnderLoad kills it, and only stops its process, which then
// takes connections and answers nothing.
func TestRedisIsAwayUnderLoad(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		away     func(t *testing.T, in *installation, redis servers.Server)
		back     func(t *testing.T, in *installation, redis servers.Server)
		answered []string // of these one at least, while it is away
	}{
		{"killed",
			func(_ *testing.T, _ *installation, redis servers.Server) { redis.Kill() },
			func(t *testing.T, _ *installation, redis servers.Server) {
				if err := redis.Start(t.Context()); err != nil {
					t.Fatal(err)
				}
			},
			[]string{"503 unavailable"}},
		{"hangs",
			func(t *testing.T, in *installation, _ servers.Server) { in.signalRedis(t, syscall.SIGSTOP) },
			func(t *testing.T, in *installation, _ servers.Server) { in.signalRedis(t, syscall.SIGCONT) },
			[]string{"503 unavailable", "503 outcome_unknown"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			redis := servertest.RedisServer(t)
			if test.name == "hangs" && !redis.Real() {
				t.Skip("needs redis-server")
			}
			in := install(t, own{redis: redis})
			in.redisPID(t)
			v, api := newVisitor(t), in.api(t, "LOCK_TTL=2s")
			in.syncer(t)
			sales := []string{"atomic", "watchdog", "setnx"}
			for _, sale := range sales {
				v.want("201", v.createSale(api.url, sale, sale, loadUnits, terms{}))
			}
			l := buying(t, v, sales, api.url)
			l.more(100)

			test.away(t, in, redis)
			if test.name == "killed" {
				eventually(t, redisBound, "a buyer is told that Redis is away", func() bool { return l.count("503 unavailable") > 0 })
				a := v.want("503 unavailable", v.buy(api.url, "atomic", extra, extra))
				if a.took > redisBound {
					t.Errorf("answered after %v", a.took)
				}
			}
			if status, _ := v.ready(api.url); status != "503 unavailable" {
				t.Errorf("readyz: %s", status)
			}
			eventually(t, 4*redisBound, "many were answered without Redis", func() bool {
				n := 0
				for _, kind := range test.answered {
					n += l.count(kind)
				}
				return n >= 3*loadWorkers
			})
			test.back(t, in, redis)
			l.more(100) // without a restart of the API
			l.end()
			if l.slowest.took > redisBound {
				t.Errorf("answered after %v: %v", l.slowest.took, l.slowest)
			}
			l.settle(in, api.url, "503 unavailable", "503 outcome_unknown", "503 lock_lost", "423 busy")
			if status, away := v.ready(api.url); status != "ready" {
				t.Errorf("readyz: %s, away %v", status, away)
			}
		})
	}
}

// redisPID asks while Redis still answers.
func (in *installation) redisPID(t testing.TB) {
	t.Helper()
	info, err := in.client.Info(t.Context(), "server").Result()
	if err != nil {
		t.Log(err) // a stand-in has no process
		return
	}
	for lines := bufio.NewScanner(strings.NewReader(info)); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "process_id:"); ok {
			if in.pid, err = strconv.Atoi(strings.TrimSpace(text)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func (in *installation) signalRedis(t testing.TB, signal syscall.Signal) {
	t.Helper()
	if in.pid <= 1 {
		t.Fatalf("process %d is no Redis", in.pid)
	}
	if err := syscall.Kill(in.pid, signal); err != nil {
		t.Fatal(err)
	}
}
