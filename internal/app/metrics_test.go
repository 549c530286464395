package app

import (
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"flashsale/internal/servers"
)

// scrapedWithin is what the deployed Prometheus allows a scrape (deploy/prometheus).
const scrapedWithin = 4 * time.Second

// visit talks to an admin listener, each time on a connection of its own.
func visit(t testing.TB, admin string) *visitor {
	return &visitor{t: t, base: "http://" + admin, http: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
}

// scrape returns the metrics of a program, which tells them in time.
func scrape(t testing.TB, admin string) string {
	t.Helper()
	began := time.Now()
	text := visit(t, admin).do(200, "GET", "/metrics", "").text
	if took := time.Since(began); took > scrapedWithin {
		t.Errorf("the scrape took %v", took)
	}
	return text
}

func has(text, series string) bool { return strings.Contains("\n"+text, "\n"+series) }

// Servers that take connections and say nothing take their own metrics away,
// and nothing else.
func TestScrapesWithSilentServers(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	silent := listener.Addr().String()
	cfg := config(t, silent, []string{silent}, "user:password@tcp("+silent+")/db")
	v, _ := startAPI(t, cfg)
	v.bounded(503, "POST", "/v1/sales/phone/purchases", purchaseOf("alice", 1))
	text := scrape(t, strings.TrimPrefix(v.admin, "http://"))
	if !has(text, `flashsale_purchases_total{outcome="unavailable",variant="unknown"} 1`) || !has(text, "go_goroutines ") {
		t.Errorf("scraped\n%s", text)
	}
	for _, name := range []string{"flashsale_outbox_entries", "flashsale_relay_oldest_seconds"} {
		if has(text, name) {
			t.Errorf("%s is known", name)
		}
	}

	syncer, _ := startSyncer(t, cfg)
	text = scrape(t, syncer.AdminAddr())
	if has(text, "flashsale_syncer_lag") || !has(text, "flashsale_syncer_batch_size_count 0") {
		t.Errorf("scraped\n%s", text)
	}
	admin := visit(t, syncer.AdminAddr())
	admin.bounded(200, "GET", "/healthz", "")
	if got := admin.bounded(503, "GET", "/readyz", ""); fmt.Sprint(got.body["away"]) != "[kafka sql]" {
		t.Errorf("readyz: %s", got.text)
	}
}

// The lag is unknown while Kafka is away, neither what it was nor zero.
func TestLagWithoutKafka(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	redis, kafka := servers.EmbeddedRedis(), servers.EmbeddedKafka(dir)
	restart(t, redis)
	restart(t, kafka)
	t.Cleanup(redis.Kill)
	t.Cleanup(kafka.Kill)
	cfg := config(t, redis.Addr(), []string{kafka.Addr()}, "sqlite:"+filepath.Join(dir, "flashsale.db"))
	cfg.RedisStandIn = true
	migrate(t, cfg)
	v, _ := startAPI(t, cfg)
	syncer, _ := startSyncer(t, cfg)
	admin := visit(t, syncer.AdminAddr())
	settled := func(units int) {
		t.Helper()
		persisted := fmt.Sprintf(`flashsale_settled_total{outcome="persisted",variant="atomic"} %d`, units)
		for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			text := scrape(t, syncer.AdminAddr())
			if has(text, "flashsale_syncer_lag 0\n") && has(text, persisted+"\n") {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("not settled:\n%s", text)
			}
		}
	}
	v.createSale("phone", "atomic", 10)
	v.do(201, "POST", "/v1/sales/phone/purchases", purchaseOf("alice", 1))
	settled(1)
	if got := admin.do(200, "GET", "/readyz", ""); got.body["status"] != "ready" {
		t.Errorf("readyz: %s", got.text)
	}

	stop(t, kafka)
	v.do(201, "POST", "/v1/sales/phone/purchases", purchaseOf("bob", 1))
	if text := scrape(t, syncer.AdminAddr()); has(text, "flashsale_syncer_lag") {
		t.Error("the lag is known without Kafka")
	}
	if got := admin.bounded(503, "GET", "/readyz", ""); fmt.Sprint(got.body["away"]) != "[kafka]" {
		t.Errorf("readyz: %s", got.text)
	}
	if text := scrape(t, strings.TrimPrefix(v.admin, "http://")); !has(text, "flashsale_outbox_entries 1\n") {
		t.Error("the outbox has not grown")
	}

	restart(t, kafka)
	settled(2)
}
