//go:build unix

package app

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"flashsale/internal/rediskey"
	"flashsale/internal/servers/child"
	"flashsale/internal/sqlstock"
)

// programs is the folder with the two programs, built when first wanted.
var programs = sync.OnceValues(func() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "flashsale-programs-"); err != nil {
		return "", err
	}
	built = dir
	build := exec.Command("go", "build", "-o", dir+string(filepath.Separator), "flashsale/cmd/api", "flashsale/cmd/syncer")
	if out, err := build.CombinedOutput(); err != nil {
		return dir, fmt.Errorf("%w: %s", err, out)
	}
	return dir, nil
})

var built string // the folder to remove at the end

func TestMain(m *testing.M) {
	code := m.Run()
	if built != "" {
		os.RemoveAll(built)
	}
	os.Exit(code)
}

// process is one of the programs, running.
type process struct {
	t    testing.TB
	run  *child.Child
	line chan map[string]any // its log
}

func startProcess(t testing.TB, cfg Config, name string) *process {
	t.Helper()
	if sqlstock.IsStandIn(cfg.MySQLDSN) {
		t.Skip("the programs refuse the stand-in for MySQL")
	}
	dir, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(dir, name))
	cmd.Env = append(os.Environ(), "FLASHSALE_LISTEN=127.0.0.1:0", "FLASHSALE_ADMIN_LISTEN=off", "FLASHSALE_REDIS_ADDRS="+strings.Join(cfg.RedisAddrs, ","),
		"FLASHSALE_KAFKA_BROKERS="+strings.Join(cfg.KafkaBrokers, ","), "FLASHSALE_MYSQL_DSN="+cfg.MySQLDSN, "FLASHSALE_ADMIN_TOKEN="+testToken, "FLASHSALE_PREFIX="+cfg.Prefix,
		"FLASHSALE_LOCK_TTL=1s") // a killed holder's lock stays so long
	stderr, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = write
	run, err := child.Start(cmd)
	write.Close()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, run: run, line: make(chan map[string]any, 100)}
	go p.read(stderr)
	t.Cleanup(run.Kill)
	return p
}

func (p *process) read(stderr io.ReadCloser) {
	defer stderr.Close()
	defer close(p.line)
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		var line map[string]any
		if json.Unmarshal(lines.Bytes(), &line) != nil {
			line = map[string]any{"msg": lines.Text()}
		}
		select {
		case p.line <- line:
		default: // nobody reads on
		}
	}
}

// says waits for a line of the log.
func (p *process) says(msg string) map[string]any {
	p.t.Helper()
	timeout := time.After(15 * time.Second)
	for {
		select {
		case line, open := <-p.line:
			if !open {
				p.t.Fatalf("ended without saying %q", msg)
			}
			if line["msg"] == msg {
				return line
			}
		case <-timeout:
			p.t.Fatalf("did not say %q", msg)
		}
	}
}

func (p *process) visit() *visitor {
	p.t.Helper()
	v := &visitor{t: p.t, base: "http://" + p.says("the API listens")["addr"].(string), http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: 90 * time.Second}}
	p.t.Cleanup(v.http.CloseIdleConnections)
	return v
}

// exit waits for the end and returns its status.
func (p *process) exit(within time.Duration) error {
	p.t.Helper()
	select {
	case <-p.run.Done():
		return p.run.Err()
	case <-time.After(within):
		p.t.Fatalf("still there after %s", within)
		return nil
	}
}

// SIGTERM: the purchase under way is answered, the exit status is 0. A second
// one doesn't wait for it.
func TestSignals(t *testing.T) {
	cfg := real(t)
	migrate(t, cfg)
	slow := func(v *visitor, id string, ms int) {
		v.do(201, "POST", "/v1/sales", fmt.Sprintf(`{"item_id":%q,"title":"a test","price_cents":100,"stock":9,"variant":"watchdog","per_user_limit":2,"work_ms":{"min":%d,"max":%d}}`, id, ms, ms),
			"Authorization", "Bearer "+testToken)
	}
	buy := func(v *visitor, id string) chan reply {
		answered := make(chan reply, 1)
		go func() {
			got, err := v.send("POST", v.base+"/v1/sales/"+id+"/purchases", purchaseOf("alice", 1))
			if err != nil {
				got.text = err.Error()
			}
			answered <- got
		}()
		waitForLock(t, cfg, id)
		return answered
	}
	for _, tc := range []struct {
		name    string
		signals int
		ms      int
	}{{"once", 1, 1500}, {"twice", 2, 10_000}} {
		t.Run(tc.name, func(t *testing.T) {
			api := startProcess(t, cfg, "api")
			v := api.visit()
			slow(v, "phone-"+tc.name, tc.ms)
			answered := buy(v, "phone-"+tc.name)
			began := time.Now()
			_ = api.run.Signal(syscall.SIGTERM)
			api.says("the API ends: finishing requests")
			if tc.signals == 2 { // one sent before the first was taken in is the same signal
				again := time.NewTicker(100 * time.Millisecond)
				defer again.Stop()
				for ended := false; !ended && time.Since(began) < 5*time.Second; {
					_ = api.run.Signal(syscall.SIGTERM)
					select {
					case <-api.run.Done():
						ended = true
					case <-again.C:
					}
				}
			}
			err := api.exit(8 * time.Second)
			got := <-answered
			if tc.signals == 1 && (err != nil || got.status != 201) {
				t.Errorf("exit %v, answer %d %s", err, got.status, got.text)
			}
			if tc.signals == 2 && (err == nil || time.Since(began) > 3*time.Second) {
				t.Errorf("exit %v after %s", err, time.Since(began))
			}
		})
	}
	syncer := startProcess(t, cfg, "syncer")
	syncer.says("the syncer works")
	_ = syncer.run.Signal(syscall.SIGTERM)
	if err := syncer.exit(15 * time.Second); err != nil {
		t.Errorf("the syncer's exit: %v", err)
	}
}

// waitForLock returns once somebody holds a sale's lock.
func waitForLock(t testing.TB, cfg Config, saleID string) {
	t.Helper()
	client, err := newRedis(cfg.RedisAddrs, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	key, _ := lockKeys(rediskey.Keys{Prefix: cfg.Prefix})(saleID)
	for deadline := time.Now().Add(10 * time.Second); client.Exists(t.Context(), key).Val() == 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("nobody took the lock")
		}
	}
}

// load buys one unit a user until ctx ends, repeating each request under its
// idempotency key, on whatever API target gives, until there is an answer.
type load struct {
	bought atomic.Int64
	ids    sync.Map // purchase ID -> user
}

func (l *load) run(ctx context.Context, t testing.TB, client *http.Client, target func() string, saleID string, buyers int) (wait func()) {
	var group sync.WaitGroup
	for b := range buyers {
		group.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				l.insist(t, client, target, saleID, fmt.Sprintf("u%d-%d", b, i))
			}
		})
	}
	return group.Wait
}

func (l *load) insist(t testing.TB, client *http.Client, target func() string, saleID, user string) {
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
		v := &visitor{t: t, http: client}
		got, err := v.send("POST", target()+"/v1/sales/"+saleID+"/purchases", purchaseOf(user, 1), "Idempotency-Key", user)
		switch {
		case err != nil, got.status == 423, got.status == 503:
			time.Sleep(5 * time.Millisecond)
		case got.status == 201:
			l.ids.Store(got.body["purchase_id"], user)
			l.bought.Add(1)
			return
		default:
			t.Errorf("%s: %d %s", user, got.status, got.text)
			return
		}
	}
	t.Errorf("%s: no answer", user)
}

// verify wants every purchase that was answered in the ledger, once, and no other.
func (l *load) verify(v *visitor, saleID string) {
	v.t.Helper()
	got := v.do(200, "GET", "/v1/sales/"+saleID+"/audit?wait=60s&deep=true", "")
	bought := float64(l.bought.Load())
	for key, want := range map[string]any{"settled": true, "accepted": bought, "persisted": bought, "rejected": 0.0, "duplicates": 0.0, "oversold": 0.0, "lost_updates": 0.0, "undersold": 0.0} {
		if got.body[key] != want {
			v.t.Errorf("%s: %s is %v, want %v", saleID, key, got.body[key], want)
		}
	}
	if deep := got.body["deep"].(map[string]any); deep["compared"] != bought {
		v.t.Errorf("%s: purchase by purchase: %v", saleID, deep)
	}
	checked := 0
	l.ids.Range(func(id, _ any) bool {
		if status := v.do(200, "GET", "/v1/purchases/"+id.(string), "").body["status"]; status != "persisted" {
			v.t.Errorf("%v is %v", id, status)
		}
		checked++
		return checked < 500
	})
}

// until waits for a condition.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// The API is killed under load, and another takes over its relay; it comes back.
// Then the syncer is killed between two batches or in one, and comes back.
func TestKilledPrograms(t *testing.T) {
	for _, variant := range []string{"watchdog", "atomic"} {
		t.Run(variant, func(t *testing.T) {
			cfg := real(t)
			migrate(t, cfg)
			first, second := startProcess(t, cfg, "api"), startProcess(t, cfg, "api")
			syncer := startProcess(t, cfg, "syncer")
			v1, v2 := first.visit(), second.visit()
			v1.createSale("phone", variant, 1_000_000)

			var target atomic.Pointer[string]
			target.Store(&v1.base)
			var l load
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			wait := l.run(ctx, t, v1.http, func() string { return *target.Load() }, "phone", 16)
			sold := func(more int64) {
				t.Helper()
				goal := l.bought.Load() + more
				until(t, "purchases go on", func() bool { return l.bought.Load() >= goal })
			}

			sold(100)
			first.run.Kill() // some requests are between write and answer
			target.Store(&v2.base)
			sold(100)
			syncer.run.Kill() // as likely as not in a transaction
			sold(100)
			startProcess(t, cfg, "syncer")
			again := startProcess(t, cfg, "api").visit()
			target.Store(&again.base)
			sold(100)
			second.run.Kill()
			sold(100)
			cancel()
			wait()
			l.verify(again, "phone")
		})
	}
}
