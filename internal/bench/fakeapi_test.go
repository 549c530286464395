package bench

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// fakeAPI answers the HTTP contract from memory. Its hooks make it misbehave.
type fakeAPI struct {
	url string

	mu       sync.Mutex
	sales    map[string]newSale
	accepted map[string]int64
	seen     []purchase        // every purchase request, in order of arrival
	audits   []string          // raw queries
	closed   []string          // sales
	refuse   map[string]string // variant -> body of the 422 that its sales get

	purchase func(api *fakeAPI, w http.ResponseWriter, p purchase) bool // true: it answered
	audit    func(sale newSale, accepted int64) map[string]any
}

type purchase struct{ sale, user, key string }

func newFakeAPI(t *testing.T) *fakeAPI {
	api := &fakeAPI{sales: map[string]newSale{}, accepted: map[string]int64{}, audit: soundAudit}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/sales", api.create)
	mux.HandleFunc("GET /v1/sales/{id}", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /v1/sales/{id}/audit", api.report)
	mux.HandleFunc("POST /v1/sales/{id}/close", api.end)
	mux.HandleFunc("POST /v1/sales/{id}/purchases", api.buy)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	api.url = server.URL
	return api
}

func (api *fakeAPI) create(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer secret" {
		http.Error(w, "who are you", http.StatusUnauthorized)
		return
	}
	var sale newSale
	if err := json.NewDecoder(r.Body).Decode(&sale); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	api.mu.Lock()
	defer api.mu.Unlock()
	if body, ok := api.refuse[sale.Variant]; ok {
		http.Error(w, body, http.StatusUnprocessableEntity)
		return
	}
	api.sales[sale.ID] = sale
	w.WriteHeader(http.StatusCreated)
}

func (api *fakeAPI) buy(w http.ResponseWriter, r *http.Request) {
	var body struct {
		UserID   string `json:"user_id"`
		Quantity int64  `json:"quantity"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || body.Quantity != 1 {
		http.Error(w, "bad body", http.StatusBadRequest)
		return
	}
	p := purchase{sale: r.PathValue("id"), user: body.UserID, key: r.Header.Get("Idempotency-Key")}
	api.mu.Lock()
	defer api.mu.Unlock()
	api.seen = append(api.seen, p)
	if api.purchase != nil && api.purchase(api, w, p) {
		return
	}
	if api.accepted[p.sale] < api.sales[p.sale].Stock {
		api.accepted[p.sale]++
		answerWith(w, http.StatusCreated, "accepted")
		return
	}
	answerWith(w, http.StatusConflict, "sold_out")
}

func (api *fakeAPI) end(_ http.ResponseWriter, r *http.Request) {
	api.mu.Lock()
	defer api.mu.Unlock()
	if r.Header.Get("Authorization") == "Bearer secret" {
		api.closed = append(api.closed, r.PathValue("id"))
	}
}

func (api *fakeAPI) report(w http.ResponseWriter, r *http.Request) {
	api.mu.Lock()
	defer api.mu.Unlock()
	api.audits = append(api.audits, r.URL.RawQuery)
	id := r.PathValue("id")
	json.NewEncoder(w).Encode(api.audit(api.sales[id], api.accepted[id]))
}

func answerWith(w http.ResponseWriter, status int, code string) {
	w.Header().Set("X-Outcome", code)
	w.WriteHeader(status)
	fmt.Fprint(w, `{}`)
}

// soundAudit is that of a system without a fault.
func soundAudit(sale newSale, accepted int64) map[string]any {
	persisted := min(accepted, sale.Stock)
	return map[string]any{
		"sale_id": sale.ID, "variant": sale.Variant, "initial": sale.Stock, "accepted": accepted,
		"persisted": persisted, "rejected": accepted - persisted, "oversold": accepted - persisted, "settled": true,
	}
}

func (api *fakeAPI) bench(t *testing.T, options Options) *Bench {
	t.Helper()
	options.URL, options.AdminToken = api.url, "secret"
	b, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (api *fakeAPI) users() string {
	var users []string
	for _, p := range api.seen {
		users = append(users, p.user)
	}
	return strings.Join(users, " ")
}
