package deploy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"flashsale/internal/app"
	"flashsale/internal/httpapi"
	"flashsale/internal/servers/child"
	"flashsale/internal/servers/servertest"
)

// sold is an API and a syncer that sell, and what they expose.
type sold struct {
	api, admin, syncer string // host:port
	exposed            map[string]string
	text               map[string]string // of a program's scrape
}

const token = "deploy-test-token"

// sell starts both programs' insides, and has someone buy until the test ends.
func sell(t *testing.T) sold {
	t.Helper()
	cfg := app.Config{
		Listen: "127.0.0.1:0", AdminListen: "127.0.0.1:0", AdminToken: token, Prefix: servertest.Prefix(t), ShutdownTimeout: 5 * time.Second,
		RedisAddrs: strings.Split(servertest.Redis(t), ","), KafkaBrokers: servertest.Kafka(t), MySQLDSN: servertest.SQL(t),
	}
	installation, err := app.OpenInstallation(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { installation.Close() })
	if _, err := installation.MigrateSchema(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := installation.MigrateTopics(t.Context()); err != nil {
		t.Fatal(err)
	}
	var sales []string
	t.Cleanup(func() { // after the programs have ended
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := installation.Remove(ctx, sales); err != nil {
			t.Log(err)
		}
	})
	quiet := slog.New(slog.DiscardHandler)
	api, err := app.NewAPI(t.Context(), cfg, quiet)
	if err != nil {
		t.Fatal(err)
	}
	start(t, api.Run)
	syncer, err := app.NewSyncer(t.Context(), cfg, quiet)
	if err != nil {
		t.Fatal(err)
	}
	start(t, syncer.Run)

	s := sold{api: api.Addr(), admin: api.AdminAddr(), syncer: syncer.AdminAddr(), exposed: map[string]string{}, text: map[string]string{}}
	for _, variant := range []string{"none", "setnx", "watchdog", "atomic"} {
		sale := cfg.Prefix + "-" + variant // the ledger is shared
		sales = append(sales, sale)
		s.post(t, 201, "/v1/sales", fmt.Sprintf(`{"id":%q,"item_id":"phone","title":"a test","price_cents":100,"stock":100000,"variant":%q,"per_user_limit":1}`, sale, variant))
		s.post(t, 201, "/v1/sales/"+sale+"/purchases", `{"user_id":"alice","quantity":1}`)
		s.post(t, 409, "/v1/sales/"+sale+"/purchases", `{"user_id":"alice","quantity":1}`)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var buyer sync.WaitGroup
	buyer.Go(func() {
		pause := time.NewTicker(20 * time.Millisecond)
		defer pause.Stop()
		for i := 0; ; i++ {
			select {
			case <-pause.C:
				s.post(t, 201, "/v1/sales/"+sales[i%len(sales)]+"/purchases", fmt.Sprintf(`{"user_id":"u%d","quantity":1}`, i))
			case <-ctx.Done():
				return
			}
		}
	})
	t.Cleanup(func() { cancel(); buyer.Wait() })
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		s.text["syncer"] = get(t, "http://"+s.syncer+"/metrics")
		if regexp.MustCompile(`flashsale_syncer_batch_size_count [1-9]`).MatchString(s.text["syncer"]) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("nothing was settled")
		}
	}
	s.text["api"] = get(t, "http://"+s.admin+"/metrics")
	for _, text := range s.text {
		for _, m := range regexp.MustCompile(`(?m)^# TYPE (\S+) (\S+)$`).FindAllStringSubmatch(text, -1) {
			s.exposed[m[1]] = m[2]
			if m[2] == "histogram" {
				s.exposed[m[1]+"_bucket"], s.exposed[m[1]+"_sum"], s.exposed[m[1]+"_count"] = "part", "part", "part"
			}
		}
	}
	return s
}

// start runs a program until the test ends, and wants no error.
func start(t *testing.T, run func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func (s sold) post(t *testing.T, want int, path, body string) {
	request, err := http.NewRequest(http.MethodPost, "http://"+s.api+path, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Error(err)
		return
	}
	defer response.Body.Close()
	if text, _ := io.ReadAll(response.Body); response.StatusCode != want {
		t.Errorf("%s: %d %s, want %d", path, response.StatusCode, text, want)
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatal(url, response.Status, err, string(text))
	}
	return string(text)
}

var (
	selector = regexp.MustCompile(`\b(flashsale_[a-z_]+)(\{[^}]*\})?`)
	matcher  = regexp.MustCompile(`([a-z]+)\s*(?:=~|!~|!=|=)\s*"([^"]*)"`)
)

// No rule and no curve asks for what nobody exposes, and nothing is exposed that
// the dashboard doesn't show.
func TestRulesAndDashboardAskForWhatIsExposed(t *testing.T) {
	s := sell(t)
	asked := map[string]bool{}
	for where, expr := range expressions(t) {
		for _, found := range selector.FindAllStringSubmatch(expr, -1) {
			name, labels := found[1], found[2]
			if s.exposed[name] == "" {
				t.Errorf("%s: nobody exposes %s", where, name)
			}
			if s.exposed[name] == "histogram" {
				t.Errorf("%s: %s is a histogram, it has parts", where, name)
			}
			if strings.HasPrefix(where, "panel ") {
				asked[name] = true
			}
			for _, m := range matcher.FindAllStringSubmatch(labels, -1) {
				for _, value := range strings.Split(m[2], "|") {
					if value != ".*" && !s.takes(name, m[1], value) {
						t.Errorf("%s: no series of %s has %s=%q", where, name, m[1], value)
					}
				}
			}
		}
	}
	for _, name := range []string{ // fixed
		"flashsale_purchases_total", "flashsale_purchase_seconds", "flashsale_lock_wait_seconds", "flashsale_lock_hold_seconds", "flashsale_lock_acquisitions_total",
		"flashsale_release_failures_total", "flashsale_outbox_entries", "flashsale_relay_oldest_seconds", "flashsale_syncer_lag", "flashsale_syncer_batch_size",
	} {
		if s.exposed[name] == "" {
			t.Errorf("%s is not exposed", name)
		}
	}
	for name, kind := range s.exposed {
		if strings.HasPrefix(name, "flashsale_") && kind != "part" && !asked[name] && !asked[name+"_bucket"] {
			t.Errorf("the dashboard does not show %s", name)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^flashsale_\w+\{([^}]*)\}`).FindAllStringSubmatch(s.text["api"]+s.text["syncer"], -1) {
		for _, label := range regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(m[1], -1) {
			if !slices.Contains([]string{"variant", "outcome", "le"}, label[1]) {
				t.Fatalf("label %s: %s", label[1], m[0])
			}
		}
	}
	for program, text := range s.text {
		command := exec.Command(servertest.Promtool(t), "check", "metrics")
		command.Stdin = strings.NewReader(text)
		if output, err := command.CombinedOutput(); err != nil {
			t.Errorf("%s: promtool check metrics: %v\n%s", program, err, output)
		}
	}
}

// takes reports whether a label can have a value.
func (s sold) takes(metric, label, value string) bool {
	if label == "variant" {
		return slices.Contains(app.Variants(), value)
	}
	if metric == "flashsale_purchases_total" {
		return slices.Contains(httpapi.Outcomes(), value)
	}
	series := regexp.MustCompile(`(?m)^` + metric + `\{[^}]*\b` + label + `="` + regexp.QuoteMeta(value) + `"`)
	return series.MatchString(s.text["api"] + s.text["syncer"])
}

// A real Prometheus scrapes both programs while something is being sold: it can
// evaluate every alert, none of which says that nobody is there, and every curve
// of the dashboard has something to show.
func TestPrometheusShowsASale(t *testing.T) {
	program := servertest.Prometheus(t)
	s := sell(t)
	dir := t.TempDir()
	local := string(read(t, "prometheus/local.yml"))
	for from, to := range map[string]string{"127.0.0.1:9190": s.admin, "127.0.0.1:9191": s.syncer, ": 5s": ": 1s", ": 4s": ": 1s"} {
		if !strings.Contains(local, from) {
			t.Fatalf("no %s in local.yml", from)
		}
		local = strings.ReplaceAll(local, from, to)
	}
	write(t, filepath.Join(dir, "alerts.yml"), string(read(t, "prometheus/alerts.yml")))
	config := write(t, filepath.Join(dir, "prometheus.yml"), local)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := listener.Addr().String()
	listener.Close()
	command := exec.Command(program, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+addr, "--log.level=warn")
	var log bytes.Buffer
	command.Stderr = &log
	prometheus, err := child.Start(command)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		prometheus.Kill()
		if t.Failed() {
			t.Log(log.String())
		}
	})

	missing := map[string]string{}
	for _, p := range dashboard(t).Panels {
		for _, target := range p.Targets {
			missing[p.Title+" "+target.RefID] = plain(target.Expr)
		}
	}
	for deadline := time.Now().Add(25 * time.Second); len(missing) > 0; time.Sleep(200 * time.Millisecond) {
		for where, expr := range missing {
			if query(addr, expr) {
				delete(missing, where)
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("nothing to show: %q", missing)
		}
	}

	var answer struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Name, Health, LastError, State string }
			}
		}
	}
	evaluated := 0
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(200 * time.Millisecond) {
		if err := json.Unmarshal([]byte(get(t, "http://"+addr+"/api/v1/rules")), &answer); err != nil {
			t.Fatal(err)
		}
		unknown := 0
		evaluated = 0
		for _, group := range answer.Data.Groups {
			for _, rule := range group.Rules {
				evaluated++
				switch {
				case rule.Health == "unknown":
					unknown++
				case rule.Health != "ok":
					t.Errorf("%s: %s", rule.Name, rule.LastError)
				}
				if slices.Contains([]string{"NoAPI", "NoSyncer", "TargetDown", "OutboxUnknown", "LagUnknown", "DeadLetters", "PurchasesRejected"}, rule.Name) && rule.State == "firing" {
					t.Errorf("%s fires", rule.Name)
				}
			}
		}
		if unknown == 0 || time.Now().After(deadline) {
			break
		}
	}
	if want := len(alerts(t)); evaluated != want {
		t.Errorf("%d alerts, want %d", evaluated, want)
	}
}

// query reports whether an expression has a value, be it 0.
func query(addr, expr string) bool {
	response, err := http.Get("http://" + addr + "/api/v1/query?query=" + url.QueryEscape(expr))
	if err != nil {
		return false // it starts
	}
	defer response.Body.Close()
	var answer struct {
		Data struct {
			Result []struct{ Value [2]any }
		}
	}
	if json.NewDecoder(response.Body).Decode(&answer) != nil {
		return false
	}
	return slices.ContainsFunc(answer.Data.Result, func(r struct{ Value [2]any }) bool { return r.Value[1] != "NaN" })
}
