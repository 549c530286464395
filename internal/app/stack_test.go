package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"flashsale/internal/kafkastock"
	"flashsale/internal/servers"
	"flashsale/internal/servers/servertest"
	"flashsale/internal/sqlstock"
)

const testToken = "test-token"

// embedded is an installation on stand-ins of the test's own.
func embedded(t testing.TB) Config {
	dir := t.TempDir()
	redis, kafka := servers.EmbeddedRedis(), servers.EmbeddedKafka(dir)
	for _, s := range []servers.Server{redis, kafka} {
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Kill)
	}
	cfg := config(t, redis.Addr(), []string{kafka.Addr()}, "sqlite:"+filepath.Join(dir, "flashsale.db"))
	cfg.RedisStandIn = true
	for range 3 {
		node := servers.EmbeddedRedis()
		if err := node.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(node.Kill)
		cfg.RedlockAddrs = append(cfg.RedlockAddrs, node.Addr())
	}
	return cfg
}

// real is one on the real servers that this machine has.
func real(t testing.TB) Config {
	cfg := config(t, servertest.Redis(t), servertest.Kafka(t), servertest.SQL(t))
	cfg.RedisStandIn = !servertest.RedisIsReal(t)
	cfg.EtcdEndpoints, cfg.ZooKeeperAddrs = servertest.EtcdIfAny(t), servertest.ZooKeeperIfAny(t)
	return cfg
}

func config(t testing.TB, redis string, brokers []string, dsn string) Config {
	return Config{
		Listen: "127.0.0.1:0", AdminListen: "127.0.0.1:0", RedisAddrs: strings.Split(redis, ","), KafkaBrokers: brokers, MySQLDSN: dsn,
		AdminToken: testToken, Prefix: servertest.Prefix(t), ShutdownTimeout: 5 * time.Second,
	}
}

func migrateSchema(t testing.TB, cfg Config) {
	t.Helper()
	db, err := sqlstock.Open(cfg.MySQLDSN, sqlstock.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func migrate(t testing.TB, cfg Config) {
	t.Helper()
	migrateSchema(t, cfg)
	kafka := kafkastock.Options{Brokers: cfg.KafkaBrokers, Topics: kafkastock.Names(cfg.Prefix)}
	if err := kafkastock.EnsureTopics(t.Context(), kafka); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		err := kafkastock.DeleteTopics(ctx, kafka)
		for err != nil && ctx.Err() == nil { // a killed syncer is a member for some seconds
			time.Sleep(200 * time.Millisecond)
			err = kafkastock.DeleteTopics(ctx, kafka)
		}
		if err != nil {
			t.Error(err)
		}
	})
}

// discard is a logger for tests that look elsewhere.
func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// runner is a program that runs.
type runner interface{ Run(context.Context) error }

// start runs a program; the result ends it and waits, and wants no error.
func start(t testing.TB, p runner) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	once := false
	end = func() {
		t.Helper()
		cancel()
		if once {
			return
		}
		once = true
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("%T ended with %v", p, err)
			}
		case <-time.After(15 * time.Second):
			t.Fatalf("%T did not end", p)
		}
	}
	t.Cleanup(end)
	return end
}

func startAPI(t testing.TB, cfg Config) (*visitor, func()) {
	t.Helper()
	api, err := NewAPI(t.Context(), cfg, discard())
	if err != nil {
		t.Fatal(err)
	}
	v := &visitor{t: t, base: "http://" + api.Addr(), admin: "http://" + api.AdminAddr(), http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: 90 * time.Second}}
	end := start(t, api)
	t.Cleanup(v.http.CloseIdleConnections)
	return v, func() {
		t.Helper()
		v.http.CloseIdleConnections()
		end()
	}
}

func startSyncer(t testing.TB, cfg Config) (*Syncer, func()) {
	t.Helper()
	s, err := NewSyncer(t.Context(), cfg, discard())
	if err != nil {
		t.Fatal(err)
	}
	return s, start(t, s)
}

// noLeaks wants every goroutine to have ended that is started from now on.
func noLeaks(t testing.TB) (check func()) {
	before := goleak.IgnoreCurrent()
	return func() {
		t.Helper()
		err := goleak.Find(before)
		for range 10 { // servers of this process take their time to see a connection go
			if err == nil {
				return
			}
			err = goleak.Find(before)
		}
		t.Error(err)
	}
}

// visitor is an HTTP client of one API.
type visitor struct {
	t           testing.TB
	base, admin string
	http        *http.Client
}

type reply struct {
	status int
	header http.Header
	body   map[string]any
	text   string
}

func (r reply) code() string { s, _ := r.body["code"].(string); return s }

func (v *visitor) send(method, url, body string, head ...string) (reply, error) {
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(head); i += 2 {
		r.Header.Set(head[i], head[i+1])
	}
	response, err := v.http.Do(r)
	if err != nil {
		return reply{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	got := reply{status: response.StatusCode, header: response.Header, text: string(text)}
	_ = json.NewDecoder(bytes.NewReader(text)).Decode(&got.body)
	return got, err
}

func (v *visitor) do(status int, method, path, body string, head ...string) reply {
	v.t.Helper()
	got, err := v.send(method, v.base+path, body, head...)
	if err != nil {
		v.t.Fatal(err)
	}
	if got.status != status {
		v.t.Errorf("%s %s: %d %s, want %d", method, path, got.status, got.text, status)
	}
	return got
}

func (v *visitor) createSale(id, variant string, stock int) {
	v.t.Helper()
	v.do(201, "POST", "/v1/sales", saleOf(id, variant, stock), "Authorization", "Bearer "+testToken)
}

func saleOf(id, variant string, stock int) string {
	return fmt.Sprintf(`{"item_id":%q,"title":"a test","price_cents":100,"stock":%d,"variant":%q,"per_user_limit":2}`, id, stock, variant)
}

func purchaseOf(user string, quantity int) string {
	return fmt.Sprintf(`{"user_id":%q,"quantity":%d}`, user, quantity)
}
