//go:build unix

package e2e

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"flashsale/internal/stock"
)

// visitor is a client of the HTTP interface that repeats nothing by itself.
type visitor struct {
	t    testing.TB
	http *http.Client
}

func newVisitor(t testing.TB) *visitor {
	v := &visitor{t, &http.Client{
		Transport: &http.Transport{MaxIdleConnsPerHost: 128, DisableCompression: true},
		Timeout:   90 * time.Second,
	}}
	t.Cleanup(v.http.CloseIdleConnections)
	return v
}

// answer is what came back; err says why nothing did.
type answer struct {
	status int
	code   string // of a problem
	text   string
	body   map[string]any
	took   time.Duration
	err    error
}

func (a answer) String() string {
	if a.err != nil {
		return a.err.Error()
	}
	return fmt.Sprint(a.status, " ", strings.TrimSpace(a.text))
}

// is compares with "201", or "503 unavailable".
func (a answer) is(want string) bool { return a.kind() == want }

// kind is status and code, or whether a request could have been received.
func (a answer) kind() string {
	var network *net.OpError
	switch {
	case a.err == nil:
		return strings.TrimSpace(fmt.Sprint(a.status, " ", a.code))
	case errors.As(a.err, &network) && network.Op == "dial":
		return "not connected"
	default:
		return "cut off"
	}
}

// send makes one request. Without GetBody the transport can't send it a second
// time when a connection is lost, as it otherwise does for one with a key.
func (v *visitor) send(method, url, body string, head ...string) (a answer) {
	request, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return answer{err: err}
	}
	request.GetBody = nil
	request.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(head); i += 2 {
		request.Header.Set(head[i], head[i+1])
	}
	began := time.Now()
	defer func() { a.took = time.Since(began) }()
	response, err := v.http.Do(request)
	if err != nil {
		return answer{err: err}
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{err: fmt.Errorf("answer cut short: %w", err)}
	}
	a = answer{status: response.StatusCode, text: string(text)}
	_ = json.Unmarshal(text, &a.body)
	a.code, _ = a.body["code"].(string)
	return a
}

func (v *visitor) want(want string, a answer) answer {
	v.t.Helper()
	if !a.is(want) {
		v.t.Fatalf("got %v, want %s", a, want)
	}
	return a
}

// terms of a sale beyond its stock and variant.
type terms struct {
	work    time.Duration // spent in the lock
	fencing string        // "off", else on
}

func (v *visitor) createSale(url, id, variant string, units int, terms terms) answer {
	body := fmt.Sprintf(`{"item_id":%q,"title":"a test","price_cents":1999,"stock":%d,"variant":%q,"per_user_limit":1,"fencing":%q,"work_ms":{"min":%d,"max":%d}}`,
		id, units, variant, cmp.Or(terms.fencing, "on"), terms.work.Milliseconds(), terms.work.Milliseconds())
	return v.send("POST", url+"/v1/sales", body, "Authorization", "Bearer "+adminToken)
}

func (v *visitor) buy(url, sale, user, key string) answer {
	return v.send("POST", url+"/v1/sales/"+sale+"/purchases", fmt.Sprintf(`{"user_id":%q,"quantity":1}`, user), "Idempotency-Key", key)
}

// ready is what /readyz says, and what it finds away.
func (v *visitor) ready(url string) (status string, away []any) {
	a := v.send("GET", url+"/readyz", "")
	if a.status != http.StatusOK {
		return a.kind(), nil
	}
	status, _ = a.body["status"].(string)
	away, _ = a.body["away"].([]any)
	return status, away
}

// audit waits up to a minute for the sale to settle.
func (v *visitor) audit(url, sale string) stock.Audit {
	v.t.Helper()
	a := v.want("200", v.send("GET", url+"/v1/sales/"+sale+"/audit?wait=60s&deep=true", ""))
	var audit stock.Audit
	if err := json.Unmarshal([]byte(a.text), &audit); err != nil {
		v.t.Fatal(err)
	}
	if audit.Deep == nil {
		v.t.Fatalf("no deep audit: %s", a.text)
	}
	return audit
}

// exact is an audit in which everything fits.
func (v *visitor) exact(url, sale string) stock.Audit {
	v.t.Helper()
	audit := v.audit(url, sale)
	if !audit.Exact() || audit.Rejected != 0 || audit.Accepted != audit.Persisted {
		v.t.Errorf("sale %s: audit %+v, deep %+v", sale, audit, *audit.Deep)
	}
	return audit
}

// snapshot is the sale's counters as the API tells them.
func (v *visitor) snapshot(url, sale string) (remaining, accepted float64) {
	v.t.Helper()
	a := v.want("200", v.send("GET", url+"/v1/sales/"+sale, ""))
	return a.body["remaining"].(float64), a.body["accepted"].(float64)
}
