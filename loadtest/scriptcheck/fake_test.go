package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeAPI behaves as the HTTP contract says, and sells as its fields say.
type fakeAPI struct {
	*httptest.Server

	extra      map[string]int // variant: units it sells beyond the stock
	short      map[string]int // variant: units it leaves unsold
	busyFirst  bool           // a user's first purchase request is answered 423
	brokenSale bool           // purchases are answered 503
	brokenAuds bool           // audits are answered 503
	misreport  func(audit map[string]any)
	slow       time.Duration // what a purchase takes; there is one at a time

	mu       sync.Mutex
	sales    map[string]*fakeSale
	requests int
}

type fakeSale struct {
	ID      string `json:"id"`
	ItemID  string `json:"item_id"`
	Title   string `json:"title"`
	Price   int64  `json:"price_cents"`
	Stock   int    `json:"stock"`
	Variant string `json:"variant"`
	Limit   int64  `json:"per_user_limit"`
	Work    any    `json:"work_ms"`
	Starts  string `json:"starts_at"`

	buyers map[string]bool // true: accepted, false: seen
	sold   int
}

const fakeToken = "fake-admin-token"

func newFakeAPI(t *testing.T) *fakeAPI {
	api := &fakeAPI{extra: map[string]int{"none": 3}, short: map[string]int{}, sales: map[string]*fakeSale{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/sales", api.create)
	mux.HandleFunc("GET /v1/sales/{id}", api.read)
	mux.HandleFunc("POST /v1/sales/{id}/purchases", api.purchase)
	mux.HandleFunc("GET /v1/sales/{id}/audit", api.audit)
	api.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		api.mu.Lock()
		defer api.mu.Unlock()
		api.requests++
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(api.Close)
	return api
}

func (api *fakeAPI) create(w http.ResponseWriter, r *http.Request) {
	var sale fakeSale
	dec := json.NewDecoder(r.Body)
	dec.DisallowUnknownFields()
	switch err := dec.Decode(&sale); {
	case r.Header.Get("Authorization") != "Bearer "+fakeToken:
		answerJSON(w, http.StatusUnauthorized, "unauthorized", nil)
	case err != nil || sale.ID == "" || len(sale.ID) > 64 || sale.Stock < 1 || sale.Limit < 1:
		answerJSON(w, http.StatusUnprocessableEntity, "invalid", nil)
	case !slices.Contains([]string{"none", "setnx", "watchdog", "atomic"}, sale.Variant):
		answerJSON(w, http.StatusUnprocessableEntity, "one of none, setnx, watchdog, atomic", nil)
	case api.sales[sale.ID] != nil:
		answerJSON(w, http.StatusConflict, "sale_exists", nil)
	default:
		sale.buyers = map[string]bool{}
		api.sales[sale.ID] = &sale
		answerJSON(w, http.StatusCreated, "", map[string]any{"id": sale.ID})
	}
}

func (api *fakeAPI) read(w http.ResponseWriter, r *http.Request) {
	if sale := api.sales[r.PathValue("id")]; sale == nil {
		answerJSON(w, http.StatusNotFound, "sale_not_found", nil)
	} else {
		answerJSON(w, http.StatusOK, "", map[string]any{"id": sale.ID, "stock": sale.Stock})
	}
}

func (api *fakeAPI) purchase(w http.ResponseWriter, r *http.Request) {
	var body struct {
		User     string `json:"user_id"`
		Quantity int    `json:"quantity"`
	}
	sale := api.sales[r.PathValue("id")]
	err := json.NewDecoder(r.Body).Decode(&body)
	if sale == nil || err != nil || body.Quantity != 1 || body.User == "" || r.Header.Get("Idempotency-Key") == "" {
		answerJSON(w, http.StatusUnprocessableEntity, "invalid", nil)
		return
	}
	accepted, seen := sale.buyers[body.User]
	sale.buyers[body.User] = accepted
	time.Sleep(api.slow)
	switch {
	case api.brokenSale:
		answerJSON(w, http.StatusServiceUnavailable, "unavailable", nil)
	case accepted:
		answerJSON(w, http.StatusConflict, "already_bought", nil)
	case api.busyFirst && !seen:
		w.Header().Set("Retry-After", "1")
		answerJSON(w, http.StatusLocked, "busy", nil)
	case sale.sold >= sale.Stock+api.extra[sale.Variant]-api.short[sale.Variant]:
		answerJSON(w, http.StatusConflict, "sold_out", nil)
	default:
		sale.buyers[body.User] = true
		sale.sold++
		w.Header().Set("X-Outcome", "accepted")
		if sale.Variant != "none" && sale.Variant != "atomic" {
			w.Header().Set("Server-Timing", "lock_wait;dur=1.25, lock_hold;dur=0.5")
		}
		answerJSON(w, http.StatusCreated, "", map[string]any{"sale_id": sale.ID, "quantity": 1})
	}
}

func (api *fakeAPI) audit(w http.ResponseWriter, r *http.Request) {
	sale := api.sales[r.PathValue("id")]
	if sale == nil || !strings.HasSuffix(r.URL.Query().Get("wait"), "s") {
		answerJSON(w, http.StatusNotFound, "sale_not_found", nil)
		return
	}
	if api.brokenAuds {
		answerJSON(w, http.StatusServiceUnavailable, "unavailable", nil)
		return
	}
	remaining := max(0, sale.Stock-sale.sold)
	oversold := max(0, sale.sold-sale.Stock)
	audit := map[string]any{
		"sale_id": sale.ID, "variant": sale.Variant, "initial": sale.Stock, "remaining": remaining,
		"accepted": sale.sold, "cancelled": 0, "persisted": sale.sold - oversold, "rejected": oversold, "in_flight": 0,
		"oversold": oversold, "lost_updates": sale.sold - (sale.Stock - remaining), "undersold": 0, "duplicates": 0, "settled": true,
	}
	if api.misreport != nil {
		api.misreport(audit)
	}
	answerJSON(w, http.StatusOK, "", audit)
}

func answerJSON(w http.ResponseWriter, status int, code string, body map[string]any) {
	if code != "" {
		w.Header().Set("X-Outcome", code)
		body = map[string]any{"code": code, "status": status}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(body)
}
