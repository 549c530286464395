package httpapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"flashsale/internal/stock"
)

func TestReady(t *testing.T) {
	away := errors.New("dial tcp 10.1.2.3:1: connection refused")
	ping := func(err error) func(context.Context) error { return func(context.Context) error { return err } }
	for _, tc := range []struct {
		name              string
		redis, kafka, sql error
		draining          bool
		status            int
		want              string
	}{
		{name: "all there", status: 200, want: "ready []"},
		{name: "no kafka", kafka: away, status: 200, want: "degraded [kafka]"},
		{name: "no sql, no kafka", kafka: away, sql: away, status: 200, want: "degraded [kafka sql]"},
		{name: "no redis", redis: away, status: 503, want: "unavailable"},
		{name: "draining", draining: true, status: 503, want: "draining"},
	} {
		w := newWorld()
		w.draining = tc.draining
		w.checks = []Check{{Name: "redis", Required: true, Ping: ping(tc.redis)}, {Name: "kafka", Ping: ping(tc.kafka)}, {Name: "sql", Ping: ping(tc.sql)}}
		c := newClient(t, w)
		got := c.do("GET", "/readyz?probe=1", "")
		said := got.code
		if got.status == 200 {
			said = fmt.Sprint(got.body["status"], " ", got.body["away"])
		}
		if got.status != tc.status || said != tc.want {
			t.Errorf("%s: got %d %s, want %d %s", tc.name, got.status, said, tc.status, tc.want)
		}
		if strings.Contains(fmt.Sprint(got.body), "10.1.2.3") {
			t.Errorf("%s: names a host: %v", tc.name, got.body)
		}
		c.do("GET", "/healthz", "").want(t, 200, "")
	}
}

// A server that hangs is away, in bounded time.
func TestReadyBoundsItsPings(t *testing.T) {
	w := newWorld()
	w.checks = []Check{{Name: "kafka", Ping: func(ctx context.Context) error {
		if _, bounded := ctx.Deadline(); !bounded {
			t.Error("the ping has no deadline")
		}
		return nil
	}}}
	newClient(t, w).do("GET", "/readyz", "").want(t, 200, "")
}

func TestMethods(t *testing.T) {
	w := newWorld()
	w.sell("phone", nil)
	c := newClient(t, w)
	for path, allow := range map[string]string{
		"/v1/sales": "GET, HEAD, POST", "/v1/sales/phone": "GET, HEAD", "/v1/sales/phone/close": "POST", "/v1/sales/phone/purchases": "GET, HEAD, POST",
		"/healthz": "GET, HEAD",
	} {
		for _, method := range []string{"DELETE", "PUT", "PATCH", "TRACE", "BREW"} {
			got := c.do(method, path, "").want(t, 405, "method_not_allowed")
			if sorted(got.header.Get("Allow")) != allow {
				t.Errorf("%s %s: Allow is %q, want %q", method, path, got.header.Get("Allow"), allow)
			}
		}
		got := c.do("OPTIONS", path, "").want(t, 204, "")
		if sorted(got.header.Get("Allow")) != allow {
			t.Errorf("OPTIONS %s: Allow is %q", path, got.header.Get("Allow"))
		}
	}
	c.do("OPTIONS", "/nothing", "").want(t, 404, "not_found")

	server := httptest.NewServer(c.handler)
	defer server.Close()
	response, err := http.Head(server.URL + "/v1/sales/phone")
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != 200 || response.ContentLength <= 0 {
		t.Errorf("HEAD: %d, length %d", response.StatusCode, response.ContentLength)
	}
}

func sorted(allow string) string {
	methods := strings.Split(allow, ", ")
	slices.Sort(methods)
	return strings.Join(methods, ", ")
}

func TestPanicIsAnAnswerAndALogLine(t *testing.T) {
	w := newWorld()
	w.sell("phone", nil)
	w.seller = sellerFunc(func(context.Context, stock.Request) (stock.Receipt, error) { panic("password=hunter2") })
	var log bytes.Buffer
	o := w.options()
	o.Logger = slog.New(slog.NewJSONHandler(&log, nil))
	c := newClient(t, w)
	c.handler = New(o)
	got := c.do("POST", "/v1/sales/phone/purchases", goodPurchase).want(t, 500, "internal")
	if strings.Contains(fmt.Sprint(got.body), "hunter2") || got.header.Get("X-Outcome") != "internal" {
		t.Errorf("got %v %v", got.header, got.body)
	}
	if !strings.Contains(log.String(), "hunter2") || !strings.Contains(log.String(), "health_test.go") {
		t.Errorf("the log has neither cause nor stack: %s", &log)
	}
}

func TestLogHasNoSecretsAndOnlyFailures(t *testing.T) {
	w := newWorld()
	w.sell("phone", nil)
	var log bytes.Buffer
	o := w.options()
	o.Logger = slog.New(slog.NewJSONHandler(&log, nil))
	c := newClient(t, w)
	c.handler = New(o)
	c.do("POST", "/v1/sales/phone/purchases", goodPurchase).want(t, 201, "")
	c.do("POST", "/v1/sales/phone/purchases", "{", "Authorization", "Bearer hunter2").want(t, 400, "malformed_json")
	if log.Len() > 0 {
		t.Errorf("the server did not fail: %s", &log)
	}
	w.counterErr = fmt.Errorf("%w: dial tcp 10.1.2.3", stock.ErrUnavailable)
	c.do("POST", "/v1/sales/other/purchases", goodPurchase, "Authorization", "Bearer hunter2").want(t, 503, "unavailable")
	if s := log.String(); !strings.Contains(s, "10.1.2.3") || !strings.Contains(s, "/v1/sales/:id/purchases") || strings.Contains(s, "hunter2") || strings.Contains(s, "alice") {
		t.Errorf("log: %s", s)
	}
}

// The server's own way to break a connection off is left alone.
func TestAbortIsNoPanic(t *testing.T) {
	w := newWorld()
	w.seller = sellerFunc(func(context.Context, stock.Request) (stock.Receipt, error) { panic(http.ErrAbortHandler) })
	defer func() {
		if cause := recover(); cause != http.ErrAbortHandler {
			t.Errorf("recovered %v", cause)
		}
	}()
	newClient(t, w).do("POST", "/v1/sales/phone/purchases", goodPurchase)
}

// A client that hung up is no failure of the server, and no line in its log.
func TestHangingUpIsNotLogged(t *testing.T) {
	w := newWorld()
	w.seller = sellerFunc(func(ctx context.Context, _ stock.Request) (stock.Receipt, error) {
		return stock.Receipt{}, fmt.Errorf("%w: %w", stock.ErrUnavailable, ctx.Err())
	})
	var log bytes.Buffer
	o := w.options()
	o.Logger = slog.New(slog.NewJSONHandler(&log, nil))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := httptest.NewRequestWithContext(ctx, "POST", "/v1/sales/phone/purchases", strings.NewReader(goodPurchase))
	r.Header.Set("Content-Type", "application/json")
	New(o).ServeHTTP(httptest.NewRecorder(), r)
	if log.Len() > 0 {
		t.Errorf("log: %s", &log)
	}
}
