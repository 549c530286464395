//go:build unix

package e2e

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"flashsale/internal/servers/servertest"
)

// scrapeBound is what the deployed Prometheus allows a scrape (deploy/prometheus).
const scrapeBound = 4 * time.Second

// TestMetricsWhileRedisHangs: the scrape is answered all the same, without the
// outbox, whose depth nobody knows, and with the buyers who were refused.
func TestMetricsWhileRedisHangs(t *testing.T) {
	t.Parallel()
	redis := servertest.RedisServer(t)
	if !redis.Real() {
		t.Skip("needs redis-server")
	}
	in := install(t, own{redis: redis})
	in.redisPID(t)
	v, api := newVisitor(t), in.api(t, "ADMIN_LISTEN=127.0.0.1:0")
	admin := "http://" + api.await("the API listens", "admin")
	scraped := func(series string) bool {
		t.Helper()
		a := v.want("200", v.send("GET", admin+"/metrics", ""))
		if a.took > scrapeBound {
			t.Errorf("scraped after %v", a.took)
		}
		return strings.Contains("\n"+a.text, "\n"+series)
	}
	v.want("201", v.createSale(api.url, "atomic", "atomic", loadUnits, terms{}))
	v.want("201", v.buy(api.url, "atomic", "alice", "alice"))
	if !scraped("flashsale_outbox_entries ") || !scraped(`flashsale_purchases_total{outcome="accepted",variant="atomic"} 1`) {
		t.Error("the outbox or the purchase is missing")
	}

	in.signalRedis(t, syscall.SIGSTOP)
	defer in.signalRedis(t, syscall.SIGCONT)
	if a := v.buy(api.url, "atomic", "bob", "bob"); a.status != 503 {
		t.Errorf("got %v without Redis", a)
	}
	for range 2 { // one after the other, as Prometheus does
		if scraped("flashsale_outbox_entries ") || scraped("flashsale_relay_oldest_seconds ") {
			t.Error("the outbox's depth is known while Redis hangs")
		}
	}
	if !scraped(`flashsale_purchases_total{outcome="outcome_unknown",variant="atomic"} 1`) && !scraped(`flashsale_purchases_total{outcome="unavailable",variant="atomic"} 1`) {
		t.Error("the purchase that failed is not counted")
	}

	in.signalRedis(t, syscall.SIGCONT)
	eventually(t, redisBound, "the outbox is known again", func() bool { return scraped("flashsale_outbox_entries ") })
}
