package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"flashsale/internal/lock"
	"flashsale/internal/stock"
)

func TestPurchase(t *testing.T) {
	w := newWorld()
	w.sell("phone", func(s *stock.Sale) { s.Variant = "watchdog"; s.Stock = 3 })
	c := newClient(t, w)
	timing := regexp.MustCompile(`^lock_wait;dur=[0-9.]+, lock_hold;dur=[0-9.]+$`)
	buy := func(user string, quantity int, head ...string) answer {
		t.Helper()
		got := c.do("POST", "/v1/sales/phone/purchases", fmt.Sprintf(`{"user_id":%q,"quantity":%d}`, user, quantity), head...)
		outcome := got.code
		if got.status == 201 {
			outcome = "accepted"
		}
		if got.header.Get("X-Outcome") != outcome {
			t.Errorf("X-Outcome is %q, want %q", got.header.Get("X-Outcome"), outcome)
		}
		if !timing.MatchString(got.header.Get("Server-Timing")) {
			t.Errorf("Server-Timing is %q", got.header.Get("Server-Timing"))
		}
		return got
	}
	first := buy("alice", 2, "Idempotency-Key", "k1").want(t, 201, "")
	if first.body["remaining"] != 1.0 || first.body["fence"] != 7.0 || first.body["sale_id"] != "phone" || first.body["quantity"] != 2.0 {
		t.Errorf("got %v", first.body)
	}
	again := buy("alice", 2, "Idempotency-Key", "k1").want(t, 201, "")
	if again.body["purchase_id"] != first.body["purchase_id"] {
		t.Errorf("a repetition is another purchase: %v", again.body)
	}
	buy("alice", 1, "Idempotency-Key", "k1").want(t, 422, "idempotency_key_reused")
	if got := buy("alice", 1).want(t, 409, "already_bought"); got.body["purchase_id"] != first.body["purchase_id"] {
		t.Errorf("already_bought does not name the purchase: %v", got.body)
	}
	if got := buy("bob", 3).want(t, 422, "invalid"); fmt.Sprint(got.fields()) != "[quantity]" || !strings.Contains(fmt.Sprint(got.body["errors"]), "an integer from 1 to 2") {
		t.Errorf("got %v", got.body)
	}
	buy("bob", 2).want(t, 409, "sold_out")
	buy("bob", 1).want(t, 201, "")
}

func TestPurchaseWithoutLockHasNoTiming(t *testing.T) {
	w := newWorld()
	w.sell("phone", nil)
	got := newClient(t, w).do("POST", "/v1/sales/phone/purchases", goodPurchase).want(t, 201, "")
	if _, there := got.header["Server-Timing"]; there {
		t.Errorf("Server-Timing without a lock: %v", got.header)
	}
}

// A lock that was refused was never held.
func TestBusyHasNoHold(t *testing.T) {
	w := newWorld()
	w.sell("phone", func(s *stock.Sale) { s.Variant = "watchdog" })
	w.locker = takenLock{}
	got := newClient(t, w).do("POST", "/v1/sales/phone/purchases", goodPurchase).want(t, 423, "busy")
	if timing := got.header.Get("Server-Timing"); !strings.HasPrefix(timing, "lock_wait;dur=") || strings.Contains(timing, "lock_hold") {
		t.Errorf("Server-Timing is %q", timing)
	}
}

// No store is away when the API merely lacks the sale's variant.
func TestVariantThatIsNotOffered(t *testing.T) {
	w := newWorld()
	w.lacking = map[string]string{"etcd": "needs etcd"}
	for variant, want := range map[string]string{
		"etcd":    "This API does not offer the sale's variant etcd: it needs etcd. Another API may offer it. Nothing was deducted.",
		"retired": "This API does not offer the sale's variant retired. Another API may offer it. Nothing was deducted.",
	} {
		w.sell("in-"+variant, func(s *stock.Sale) { s.Variant = variant })
		got := newClient(t, w).do("POST", "/v1/sales/in-"+variant+"/purchases", goodPurchase).want(t, 503, "unavailable")
		if got.body["detail"] != want {
			t.Errorf("%s: got %v", variant, got.body["detail"])
		}
	}
}

func TestPurchaseWindow(t *testing.T) {
	w := newWorld()
	w.sell("soon", func(s *stock.Sale) { s.StartsAt = time.Now().Add(time.Hour) })
	w.sell("over", func(s *stock.Sale) { s.EndsAt = time.Now().Add(-time.Hour) })
	c := newClient(t, w)
	c.do("POST", "/v1/sales/soon/purchases", goodPurchase).want(t, 409, "sale_not_started")
	c.do("POST", "/v1/sales/over/purchases", goodPurchase).want(t, 409, "sale_closed")
	c.do("POST", "/v1/sales/none/purchases", goodPurchase).want(t, 404, "sale_not_found")
}

// Every error that a port can answer with, wrapped as adapters do, and joined
// with one that promises more.
func TestErrorTable(t *testing.T) {
	cases := []struct {
		err    error
		status int
		code   string
	}{
		{stock.ErrSoldOut, 409, "sold_out"},
		{&stock.AlreadyBoughtError{PurchaseID: "phone.x"}, 409, "already_bought"},
		{stock.ErrSaleNotStarted, 409, "sale_not_started"},
		{stock.ErrSaleClosed, 409, "sale_closed"},
		{stock.ErrNotOnSale, 409, "sale_closed"},
		{stock.ErrOverLimit, 422, "invalid"},
		{&stock.InvalidError{Fields: []stock.FieldError{{Field: "user_id"}}}, 422, "invalid"},
		{stock.ErrKeyReused, 422, "idempotency_key_reused"},
		{stock.ErrBusy, 423, "busy"},
		{lock.ErrNotAcquired, 423, "busy"},
		{stock.ErrStale, 503, "lock_lost"},
		{lock.ErrLost, 503, "lock_lost"},
		{stock.ErrUnavailable, 503, "unavailable"},
		{lock.ErrUnavailable, 503, "unavailable"},
		{context.Canceled, 503, "unavailable"},
		{context.DeadlineExceeded, 503, "unavailable"},
		{stock.ErrOutcomeUnknown, 503, "outcome_unknown"},
		{errors.Join(stock.ErrUnavailable, stock.ErrOutcomeUnknown), 503, "outcome_unknown"},
		{errors.Join(lock.ErrLost, context.Canceled, stock.ErrOutcomeUnknown), 503, "outcome_unknown"},
		{errors.New("panic: password=hunter2"), 500, "internal"},
	}
	for _, tc := range cases {
		w := newWorld()
		w.sell("phone", nil)
		w.seller = sellerFunc(func(context.Context, stock.Request) (stock.Receipt, error) {
			return stock.Receipt{}, fmt.Errorf("adapter hunter2: %w", tc.err)
		})
		got := newClient(t, w).do("POST", "/v1/sales/phone/purchases", goodPurchase).want(t, tc.status, tc.code)
		if got.header.Get("X-Outcome") != tc.code || Outcome(tc.err) != tc.code {
			t.Errorf("X-Outcome %q, Outcome %q, want %q", got.header.Get("X-Outcome"), Outcome(tc.err), tc.code)
		}
		if (got.header.Get("Retry-After") != "") != (tc.status == 423) {
			t.Errorf("%s: Retry-After %q", tc.code, got.header.Get("Retry-After"))
		}
		if strings.Contains(fmt.Sprint(got.body, got.header), "hunter2") {
			t.Errorf("%s leaks the error's text: %v", tc.code, got.body)
		}
	}
}

func TestPurchaseStatus(t *testing.T) {
	w := newWorld()
	w.sell("phone", nil)
	c := newClient(t, w)
	id := c.do("POST", "/v1/sales/phone/purchases", goodPurchase).want(t, 201, "").body["purchase_id"].(string)
	status := func() (any, any) {
		one := c.do("GET", "/v1/purchases/"+id, "").want(t, 200, "")
		list := c.do("GET", "/v1/sales/phone/purchases?user_id=alice", "").want(t, 200, "").body["purchases"].([]any)
		if len(list) != 1 {
			t.Fatalf("alice has %v", list)
		}
		return one.body["status"], list[0].(map[string]any)["status"]
	}
	if one, listed := status(); one != "pending" || listed != "pending" {
		t.Errorf("before the ledger has it: %v, %v", one, listed)
	}
	row, err := w.Memory.Purchase(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	row.Status, row.Reason, row.PersistedAt = stock.StatusRejected, "sold_out", time.Now()
	w.rows[id] = row
	if one, listed := status(); one != "rejected" || listed != "rejected" {
		t.Errorf("the ledger's word counts: %v, %v", one, listed)
	}
	c.do("GET", "/v1/purchases/phone.aaaaaaaaaaaaaaaaaaaaaaaaaa", "").want(t, 404, "purchase_not_found")
	if got := c.do("GET", "/v1/sales/phone/purchases?user_id=nobody", "").want(t, 200, ""); len(got.body["purchases"].([]any)) != 0 {
		t.Errorf("got %v", got.body)
	}
	c.do("GET", "/v1/sales/none/purchases?user_id=alice", "").want(t, 404, "sale_not_found")
}

// A client that hangs up leaves the queue of the lock.
func TestHangingUpReachesTheSeller(t *testing.T) {
	w := newWorld()
	w.sell("phone", nil)
	var gone error
	w.seller = sellerFunc(func(ctx context.Context, _ stock.Request) (stock.Receipt, error) {
		<-ctx.Done()
		gone = ctx.Err()
		return stock.Receipt{}, fmt.Errorf("%w: %w", stock.ErrUnavailable, gone)
	})
	c := newClient(t, w)
	ctx, cancel := context.WithCancel(t.Context())
	r := httptest.NewRequestWithContext(ctx, "POST", "/v1/sales/phone/purchases", strings.NewReader(goodPurchase))
	r.Header.Set("Content-Type", "application/json")
	cancel()
	c.send(r)
	if !errors.Is(gone, context.Canceled) {
		t.Errorf("the seller saw %v", gone)
	}
}

func TestPurchasesAtOnce(t *testing.T) {
	w := newWorld()
	w.sell("phone", func(s *stock.Sale) { s.Stock = 5 })
	handler := New(w.options())
	codes := make([]int, 20)
	var wg sync.WaitGroup
	for i := range codes {
		wg.Go(func() {
			r := httptest.NewRequest("POST", "/v1/sales/phone/purchases", strings.NewReader(fmt.Sprintf(`{"user_id":"u%d","quantity":1}`, i)))
			r.Header.Set("Content-Type", "application/json")
			rec := httptest.NewRecorder()
			handler.ServeHTTP(rec, r)
			codes[i] = rec.Code
		})
	}
	wg.Wait()
	count := map[int]int{}
	for _, code := range codes {
		count[code]++
	}
	if s, err := w.Snapshot(t.Context(), "phone"); err != nil || s.Remaining != 0 || count[201] != 5 || count[409] != 15 {
		t.Errorf("remaining %d, answers %v, %v", s.Remaining, count, err)
	}
}
