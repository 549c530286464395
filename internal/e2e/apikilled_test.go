//go:build unix

package e2e

import (
	"context"
	"testing"
	"time"

	"flashsale/internal/rediskey"
	"flashsale/internal/relay"
)

// TestAPIIsKilledUnderLoad kills the API that relays all shards; another one
// takes them over, then the first one comes back under its address.
func TestAPIIsKilledUnderLoad(t *testing.T) {
	t.Parallel()
	in := install(t, own{})
	v := newVisitor(t)
	ttl := "LOCK_TTL=2s" // what a killed holder had locked is free again soon
	first := in.api(t, ttl)
	leaders := in.leaders(t)
	second := in.api(t, ttl)
	in.syncer(t)
	sales := []string{"atomic", "watchdog"}
	// With work to do under the lock, the API always has requests in hand.
	v.want("201", v.createSale(first.url, "atomic", "atomic", loadUnits, terms{}))
	v.want("201", v.createSale(first.url, "watchdog", "watchdog", loadUnits, terms{work: 20 * time.Millisecond}))

	l := buying(t, v, sales, first.url, second.url)
	l.more(200)
	first.kill()
	l.more(20)
	if entries := in.outbox(t); entries == 0 {
		t.Error("the outbox is empty though its relay was killed")
	}
	eventually(t, 30*time.Second, "the second API leads every shard", func() bool {
		for shard, token := range in.tokens(t) {
			if token == "" || token == leaders[shard] {
				return false
			}
		}
		return true
	})
	eventually(t, 30*time.Second, "the outbox drains", func() bool { return in.outbox(t) == 0 })

	in.api(t, ttl, "LISTEN="+first.addr)
	l.more(200)
	l.end()
	if l.count("cut off") == 0 {
		t.Error("no request was in the API when it was killed")
	}
	l.settle(in, second.url, "cut off", "not connected", "423 busy")
}

// leaders waits until every shard has one.
func (in *installation) leaders(t testing.TB) (tokens []string) {
	t.Helper()
	eventually(t, 30*time.Second, "every shard has a leader", func() bool {
		tokens = in.tokens(t)
		for _, token := range tokens {
			if token == "" {
				return false
			}
		}
		return true
	})
	return tokens
}

// tokens are what the shards' locks hold, "" for a free one.
func (in *installation) tokens(t testing.TB) []string {
	t.Helper()
	tokens := make([]string, rediskey.Shards)
	for shard := range tokens {
		// A free lock's key is missing, which is an error to this client.
		tokens[shard] = in.client.Get(context.Background(), in.keys().Lock(relay.LockKey(shard))).Val()
	}
	return tokens
}
