package app

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"flashsale/internal/servers"
	"flashsale/internal/servers/servertest"
)

// answersWithin bounds every answer while a server is away.
const answersWithin = 6 * time.Second

// eventually asks until the answer has this status.
func (v *visitor) eventually(status int, method, path, body string) reply {
	v.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		got, err := v.send(method, v.base+path, body)
		if err == nil && got.status == status {
			return got
		}
		if time.Now().After(deadline) {
			v.t.Fatalf("%s %s: still %d %s %v, want %d", method, path, got.status, got.text, err, status)
		}
	}
}

// bounded is do with a look at the clock.
func (v *visitor) bounded(status int, method, path, body string) reply {
	v.t.Helper()
	began := time.Now()
	got := v.do(status, method, path, body)
	if took := time.Since(began); took > answersWithin {
		v.t.Errorf("%s %s took %s", method, path, took)
	}
	return got
}

func stop(t testing.TB, s servers.Server) {
	t.Helper()
	if err := s.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func restart(t testing.TB, s servers.Server) {
	t.Helper()
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// onRedisAlone are the variants that sell for as long as Redis is there.
func onRedisAlone() []string {
	return names(func(v variant) bool { return v.needs.met == nil && !slices.Contains(fromLedger, v.name) })
}

// An API starts before its servers do. Without Redis it sells nothing and says
// so; without Kafka and the database it sells; nothing needs a restart.
func TestServersComeLater(t *testing.T) {
	redis, kafka, sql := servertest.RedisServer(t), servertest.KafkaServer(t), servertest.SQLServer(t)
	cfg := config(t, redis.Addr(), []string{kafka.Addr()}, sql.DSN())
	migrate(t, cfg)
	v, end := startAPI(t, cfg)
	for _, variant := range onRedisAlone() {
		v.createSale("phone-"+variant, variant, 1000)
	}
	end()
	for _, s := range []servers.Server{redis, kafka, sql} {
		stop(t, s)
	}

	began := time.Now()
	v, _ = startAPI(t, cfg)
	if took := time.Since(began); took > startupTimeout+2*time.Second {
		t.Errorf("started after %s", took)
	}
	v.bounded(200, "GET", "/healthz", "")
	if got := v.bounded(503, "GET", "/readyz", ""); got.code() != "unavailable" {
		t.Errorf("got %s", got.text)
	}
	buy := func(status int, user string) {
		t.Helper()
		for _, variant := range onRedisAlone() {
			got := v.bounded(status, "POST", "/v1/sales/phone-"+variant+"/purchases", purchaseOf(user, 1))
			if status == 503 && got.code() != "unavailable" {
				t.Errorf("%s: %s", variant, got.text)
			}
		}
	}
	buy(503, "without-redis")

	restart(t, redis)
	if got := v.eventually(200, "GET", "/readyz", ""); got.body["status"] != "degraded" || fmt.Sprint(got.body["away"]) != "[kafka sql]" {
		t.Errorf("got %s", got.text)
	}
	buy(201, "on-redis-alone")
	v.bounded(200, "GET", "/v1/sales/phone-atomic", "")
	v.bounded(503, "GET", "/v1/sales", "")
	metrics, err := v.send("GET", v.admin+"/metrics", "")
	if err != nil || !strings.Contains(metrics.text, fmt.Sprintf("flashsale_outbox_entries %d\n", len(onRedisAlone()))) {
		t.Errorf("the outbox has not grown: %v", err)
	}

	stop(t, redis)
	buy(503, "without-redis-again")
	restart(t, redis)
	v.eventually(200, "GET", "/readyz", "")
	buy(201, "once-more")

	startSyncer(t, cfg) // before its servers, too
	restart(t, kafka)
	restart(t, sql)
	for _, variant := range onRedisAlone() {
		got := v.eventually(200, "GET", "/v1/sales/phone-"+variant+"/audit?wait=30s&deep=true", "")
		if got.body["settled"] != true || got.body["persisted"] != 2.0 || got.body["duplicates"] != 0.0 {
			t.Errorf("%s: %s", variant, got.text)
		}
	}
	if got := v.eventually(200, "GET", "/readyz", ""); got.body["status"] != "ready" {
		t.Errorf("got %s", got.text)
	}
}

// Servers that take connections and say nothing.
func TestSilentServers(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() // closes what was never accepted
	silent := listener.Addr().String()
	began := time.Now()
	v, end := startAPI(t, config(t, silent, []string{silent}, "user:password@tcp("+silent+")/db"))
	if took := time.Since(began); took > startupTimeout+2*time.Second {
		t.Errorf("started after %s", took)
	}
	for path, status := range map[string]int{"/healthz": 200, "/readyz": 503, "/v1/sales/phone": 503} {
		v.bounded(status, "GET", path, "")
	}
	if got := v.bounded(503, "POST", "/v1/sales/phone/purchases", purchaseOf("alice", 1)); got.code() != "unavailable" {
		t.Errorf("got %s", got.text)
	}
	began = time.Now()
	end()
	if took := time.Since(began); took > 2*relayTTL {
		t.Errorf("ended after %s", took)
	}
}

// What only a person can mend is refused at the start, with the command that does it.
func TestUnfitServersAreRefused(t *testing.T) {
	cfg := embedded(t)
	refused := func(part string) {
		t.Helper()
		_, apiErr := NewAPI(t.Context(), cfg, discard())
		_, syncerErr := NewSyncer(t.Context(), cfg, discard())
		for _, err := range []error{apiErr, syncerErr} {
			if err == nil || !strings.Contains(err.Error(), "flashsale migrate") || !strings.Contains(err.Error(), part) {
				t.Errorf("got %v, want %s", err, part)
			}
		}
	}
	refused("schema")
	migrateSchema(t, cfg)
	refused("topic")
	migrate(t, cfg)
	startAPI(t, cfg)
	startSyncer(t, cfg)
}

func TestMissingConfig(t *testing.T) {
	if _, err := NewAPI(t.Context(), Config{}, discard()); err == nil || !strings.Contains(err.Error(), "AdminToken, KafkaBrokers, Listen, MySQLDSN, RedisAddrs") {
		t.Errorf("got %v", err)
	}
	if _, err := NewSyncer(t.Context(), Config{}, discard()); err == nil || !strings.Contains(err.Error(), "KafkaBrokers, MySQLDSN") {
		t.Errorf("got %v", err)
	}
}

func TestBusyPortIsRefused(t *testing.T) {
	cfg := embedded(t)
	migrate(t, cfg)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	check := noLeaks(t)
	for _, taken := range []*string{&cfg.Listen, &cfg.AdminListen} {
		free := *taken
		*taken = listener.Addr().String()
		if _, err := NewAPI(t.Context(), cfg, discard()); err == nil || !strings.Contains(err.Error(), "address already in use") {
			t.Errorf("got %v", err)
		}
		*taken = free
	}
	check()
}

// The end of an API: requests under way are answered, nothing that was sold is
// lost, and another API takes the relay over at once.
func TestEndUnderLoad(t *testing.T) {
	cfg := embedded(t)
	migrate(t, cfg)
	first, endFirst := startAPI(t, cfg)
	second, _ := startAPI(t, cfg)
	startSyncer(t, cfg)
	first.createSale("phone", "watchdog", 100_000)

	var accepted sync.Map // purchase IDs
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var buyers sync.WaitGroup
	sold := make(chan struct{}, 1)
	for b := range 16 {
		buyers.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				got, err := first.send("POST", first.base+"/v1/sales/phone/purchases", purchaseOf(fmt.Sprintf("u%d-%d", b, i), 1))
				switch {
				case err != nil:
					return // the listener is closed
				case got.status == 201:
					accepted.Store(got.body["purchase_id"], true)
					select {
					case sold <- struct{}{}:
					default:
					}
				case got.status != 423:
					t.Errorf("%d %s", got.status, got.text)
				}
			}
		})
	}
	<-sold
	began := time.Now()
	endFirst()
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
	cancel()
	buyers.Wait()

	audit := second.do(200, "GET", "/v1/sales/phone/audit?wait=20s&deep=true", "")
	count := 0
	accepted.Range(func(id, _ any) bool {
		count++
		if got := second.do(200, "GET", "/v1/purchases/"+id.(string), ""); got.body["status"] != "persisted" {
			t.Errorf("%v was sold and is %s", id, got.text)
		}
		return true
	})
	if audit.body["settled"] != true || audit.body["persisted"].(float64) < float64(count) || audit.body["lost_updates"] != 0.0 {
		t.Errorf("%d answered 201, audit %s", count, audit.text)
	}
}

// A minute's wait doesn't hold up the end.
func TestEndCutsAuditsShort(t *testing.T) {
	cfg := embedded(t)
	migrate(t, cfg)
	v, end := startAPI(t, cfg)
	v.createSale("phone", "atomic", 10)
	v.do(201, "POST", "/v1/sales/phone/purchases", purchaseOf("alice", 1)) // no syncer: never settled
	ended := make(chan error, 1)
	go func() {
		_, err := v.send("GET", v.base+"/v1/sales/phone/audit?wait=60s", "")
		ended <- err
	}()
	for !auditing(v) {
		time.Sleep(5 * time.Millisecond)
	}
	began := time.Now()
	end()
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("it took %s", took)
	}
	if err := <-ended; err != nil {
		t.Errorf("the request was not answered: %v", err)
	}
}

// auditing finds an audit among the goroutines that pprof lists.
func auditing(v *visitor) bool {
	got, err := v.send("GET", v.admin+"/debug/pprof/goroutine?debug=1", "")
	return err == nil && strings.Contains(got.text, "audit.(*Auditor).Audit")
}
