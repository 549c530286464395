package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"flashsale/internal/stock"
)

// client is the API as a buyer and an admin use it.
type client struct {
	base  string
	token string
	http  *http.Client
}

// newClient keeps a connection for each of users, so that a measurement isn't
// one of TCP handshakes.
func newClient(base, token string, users int, timeout time.Duration) *client {
	return &client{
		base:  strings.TrimRight(base, "/"),
		token: token,
		http: &http.Client{
			Timeout: timeout,
			Transport: &http.Transport{
				DialContext:         (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
				MaxIdleConns:        users,
				MaxIdleConnsPerHost: users,
				IdleConnTimeout:     time.Minute,
				DisableCompression:  true,
			},
		},
	}
}

func (c *client) close() { c.http.CloseIdleConnections() }

// patient is the client for requests that may take so much longer.
func (c *client) patient(longer time.Duration) *client {
	other := *c
	other.http = &http.Client{Transport: c.http.Transport, Timeout: c.http.Timeout + longer}
	return &other
}

// newSale is the body of POST /v1/sales.
type newSale struct {
	ID           string  `json:"id"`
	ItemID       string  `json:"item_id"`
	Title        string  `json:"title"`
	PriceCents   int64   `json:"price_cents"`
	Stock        int64   `json:"stock"`
	Variant      string  `json:"variant"`
	PerUserLimit int64   `json:"per_user_limit"`
	Work         *workMs `json:"work_ms,omitempty"`
}

type workMs struct {
	Min int64 `json:"min"`
	Max int64 `json:"max"`
}

func (w Work) body() *workMs {
	if w == (Work{}) {
		return nil
	}
	return &workMs{Min: w.Min.Milliseconds(), Max: w.Max.Milliseconds()}
}

func (c *client) createSale(ctx context.Context, sale newSale) error {
	body, err := json.Marshal(sale)
	if err != nil {
		return err
	}
	return c.call(ctx, http.MethodPost, "/v1/sales", body, http.StatusCreated, nil)
}

func (c *client) closeSale(ctx context.Context, saleID string) error {
	return c.call(ctx, http.MethodPost, salePath(saleID)+"/close", nil, http.StatusOK, nil)
}

// audit waits up to wait for the sale to settle and compares every purchase.
func (c *client) audit(ctx context.Context, saleID string, wait time.Duration) (stock.Audit, error) {
	query := url.Values{"wait": {wait.String()}, "deep": {"true"}}
	var report stock.Audit
	err := c.call(ctx, http.MethodGet, salePath(saleID)+"/audit?"+query.Encode(), nil, http.StatusOK, &report)
	return report, err
}

// warm makes a request that changes nothing, to have a connection.
func (c *client) warm(ctx context.Context, saleID string) error {
	return c.call(ctx, http.MethodGet, salePath(saleID), nil, http.StatusOK, nil)
}

// buy makes one purchase request. The idempotency key makes a repetition, also
// the transport's own, the same purchase.
func (c *client) buy(ctx context.Context, saleID, userID string) answer {
	body := []byte(`{"user_id":"` + userID + `","quantity":1}`)
	request, err := c.request(ctx, http.MethodPost, salePath(saleID)+"/purchases", body)
	if err != nil {
		return answer{failure: err.Error()}
	}
	request.Header.Set("Idempotency-Key", userID)
	response, err := c.http.Do(request)
	if err != nil {
		return answer{failure: "no answer: " + reason(err)}
	}
	defer response.Body.Close()
	return read(response)
}

func (c *client) request(ctx context.Context, method, path string, body []byte) (*http.Request, error) {
	var reader io.Reader
	if body != nil {
		reader = bytes.NewReader(body)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, reader)
	if err == nil && body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	return request, err
}

// call makes an admin's request and decodes its answer into out.
func (c *client) call(ctx context.Context, method, path string, body []byte, want int, out any) error {
	request, err := c.request(ctx, method, path, body)
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return fmt.Errorf("bench: %s %s: %w", method, path, err)
	}
	if response.StatusCode != want {
		return &refusal{method: method, path: path, status: response.StatusCode, want: want, body: text}
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(text, out); err != nil {
		return fmt.Errorf("bench: %s %s: %w", method, path, err)
	}
	return nil
}

func salePath(saleID string) string { return "/v1/sales/" + url.PathEscape(saleID) }

// reason strips what differs from request to request, so that kinds of failures
// can be counted: the address, and the client's own port.
func reason(err error) string {
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	if e, ok := errors.AsType[*net.OpError](err); ok {
		return e.Op + ": " + e.Err.Error()
	}
	return err.Error()
}

// refusal is an answer that was not wanted.
type refusal struct {
	method, path string
	status, want int
	body         []byte
}

func (r *refusal) Error() string {
	return fmt.Sprintf("bench: %s %s: status %d instead of %d: %s",
		r.method, r.path, r.status, r.want, bytes.TrimSpace(r.body[:min(len(r.body), 500)]))
}

// lacking is what a refused sale's variant needs and the API hasn't got, as in
// "needs etcd"; empty when it was refused for another reason.
func (r *refusal) lacking() string {
	var problem struct {
		Errors []struct{ Field, Reason string }
	}
	if r.status != http.StatusUnprocessableEntity || json.Unmarshal(r.body, &problem) != nil || len(problem.Errors) != 1 {
		return ""
	}
	if e := problem.Errors[0]; e.Field == "variant" {
		return strings.TrimPrefix(e.Reason, "is not offered here: it ")
	}
	return ""
}
