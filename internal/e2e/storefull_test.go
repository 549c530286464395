//go:build unix

package e2e

import (
	"testing"
	"time"

	"flashsale/internal/servers/servertest"
)

// TestRedisIsFull takes its memory away. It refuses to write then, and answers
// everything else.
func TestRedisIsFull(t *testing.T) {
	t.Parallel()
	redis := servertest.RedisServer(t)
	if !redis.Real() {
		t.Skip("needs redis-server")
	}
	in := install(t, own{redis: redis})
	v, api := newVisitor(t), in.api(t)
	in.syncer(t)
	variants := []string{"none", "setnx", "watchdog", "atomic"}
	for _, variant := range variants {
		v.want("201", v.createSale(api.url, variant, variant, 10, terms{}))
		v.want("201", v.buy(api.url, variant, "before", "before"))
	}
	memory := func(limit string) {
		t.Helper()
		if err := in.client.ConfigSet(t.Context(), "maxmemory", limit).Err(); err != nil {
			t.Fatal(err)
		}
	}

	memory("1")
	for _, variant := range variants {
		a := v.want("503 unavailable", v.buy(api.url, variant, "buyer", "buyer"))
		if a.took > redisBound {
			t.Errorf("%s: answered after %v", variant, a.took)
		}
		if remaining, accepted := v.snapshot(api.url, variant); remaining != 9 || accepted != 1 {
			t.Errorf("%s: %v remaining, %v accepted", variant, remaining, accepted)
		}
		if variant == "none" || variant == "atomic" { // without a lock, which is a write too
			v.want("201", v.buy(api.url, variant, "before", "before"))
		}
	}
	v.want("503 unavailable", v.createSale(api.url, "late", "atomic", 1, terms{}))

	memory("0")
	v.want("201", v.createSale(api.url, "late", "atomic", 1, terms{}))
	for _, variant := range variants {
		v.want("201", v.buy(api.url, variant, "buyer", "buyer"))
		if audit := v.exact(api.url, variant); audit.Accepted != 2 {
			t.Errorf("audit %+v", audit)
		}
	}
	eventually(t, 10*time.Second, "the outbox drains", func() bool { return in.outbox(t) == 0 })
}
