package httpapi

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"flashsale/internal/stock"
)

func TestCreateSale(t *testing.T) {
	w := newWorld()
	c := newClient(t, w)
	full := `{"id":"phone-1","item_id":"phone","title":"Téléphone 手机","price_cents":0,"stock":1000000000,"variant":"watchdog","per_user_limit":3,
		"starts_at":"2030-11-11T10:00:00.1234567+02:00","ends_at":"2030-11-12T10:00:00Z","fencing":"off","work_ms":{"min":0,"max":10000}}`
	got := c.do("POST", "/v1/sales", full, "Authorization", bearer).want(t, 201, "")
	if got.header.Get("Location") != "/v1/sales/phone-1" || got.body["state"] != "scheduled" || got.body["remaining"] != 1e9 || got.body["fencing"] != "off" {
		t.Errorf("got %v %v", got.header, got.body)
	}
	sale := w.records["phone-1"].Sale
	if want := time.Date(2030, 11, 11, 8, 0, 0, 123456000, time.UTC); !sale.StartsAt.Equal(want) || sale.Fencing || sale.Work.Max != 10*time.Second {
		t.Errorf("stored %+v", sale)
	}
	c.do("POST", "/v1/sales", full, "Authorization", bearer).want(t, 201, "") // the same again
	if got := c.do("POST", "/v1/sales", goodSale, "Authorization", bearer).want(t, 201, ""); got.body["fencing"] != "on" {
		t.Errorf("fencing is on when nothing is said: %v", got.body)
	}
	if s := w.records["phone"]; s.ID != "phone" || !s.Fencing {
		t.Errorf("the sale's ID is its item's, fencing is on: %+v", s)
	}
	other := `{"item_id":"phone","title":"A phone","price_cents":101,"stock":10,"variant":"atomic","per_user_limit":1}`
	c.do("POST", "/v1/sales", other, "Authorization", bearer).want(t, 409, "sale_exists")
}

func TestCreateSaleHalfDone(t *testing.T) {
	w := newWorld()
	c := newClient(t, w)
	w.preloadErr = stock.ErrUnavailable
	c.do("POST", "/v1/sales", goodSale, "Authorization", bearer).want(t, 503, "unavailable")
	// In the ledger, not in the counter: never "not found", never "sold out".
	if got := c.do("GET", "/v1/sales/phone", "").want(t, 503, "unavailable"); !strings.Contains(fmt.Sprint(got.body["detail"]), "recorded but not loaded") {
		t.Errorf("got %v", got.body)
	}
	c.do("GET", "/v1/sales/phone/audit", "").want(t, 503, "unavailable")
	c.do("POST", "/v1/sales/phone/purchases", goodPurchase).want(t, 503, "unavailable")
	c.do("POST", "/v1/sales/phone/close", "", "Authorization", bearer).want(t, 503, "unavailable")
	if list := c.do("GET", "/v1/sales", "").want(t, 200, "").body["sales"].([]any); list[0].(map[string]any)["remaining"] != nil {
		t.Errorf("the counter's numbers are unknown: %v", list)
	}
	w.ledgerErr = stock.ErrUnavailable
	if got := c.do("GET", "/v1/sales/phone", "").want(t, 503, "unavailable"); !strings.Contains(fmt.Sprint(got.body["detail"]), "cannot be asked") {
		t.Errorf("got %v", got.body)
	}
	w.preloadErr, w.ledgerErr = nil, nil
	c.do("POST", "/v1/sales", goodSale, "Authorization", bearer).want(t, 201, "")
	c.do("POST", "/v1/sales/phone/purchases", goodPurchase).want(t, 201, "")
}

func TestStoresAway(t *testing.T) {
	w := newWorld()
	w.sell("phone", nil)
	c := newClient(t, w)
	buy := func() answer { return c.do("POST", "/v1/sales/phone/purchases", goodPurchase) }

	w.ledgerErr = fmt.Errorf("%w: dial tcp 10.1.2.3:3306", stock.ErrUnavailable)
	bought := buy().want(t, 201, "") // selling needs the counter alone
	c.do("GET", "/v1/sales/phone", "").want(t, 200, "")
	c.do("GET", "/v1/sales/nothing", "").want(t, 503, "unavailable")
	c.do("GET", "/v1/sales", "").want(t, 503, "unavailable")
	c.do("GET", "/v1/sales/phone/purchases?user_id=alice", "").want(t, 503, "unavailable")
	c.do("GET", "/v1/purchases/"+bought.body["purchase_id"].(string), "").want(t, 503, "unavailable")
	got := c.do("POST", "/v1/sales", goodSale, "Authorization", bearer).want(t, 503, "unavailable")
	if s := fmt.Sprint(got.body); strings.Contains(s, "10.1.2.3") {
		t.Errorf("the answer names a host: %s", s)
	}

	w.ledgerErr, w.counterErr = nil, fmt.Errorf("%w: dial tcp", stock.ErrUnavailable)
	buy().want(t, 503, "unavailable")
	for _, path := range []string{"/v1/sales/phone", "/v1/sales", "/v1/sales/phone/purchases?user_id=alice", "/v1/sales/phone/audit",
		"/v1/purchases/" + bought.body["purchase_id"].(string)} {
		c.do("GET", path, "").want(t, 503, "unavailable")
	}
	c.do("POST", "/v1/sales/phone/close", "", "Authorization", bearer).want(t, 503, "unavailable")
}

func TestListSalesPages(t *testing.T) {
	w := newWorld()
	for i := range 5 {
		w.sell(fmt.Sprintf("s%d", i), nil)
	}
	c := newClient(t, w)
	var seen []any
	path, pages := "/v1/sales?limit=2", 0
	for ; path != ""; pages++ {
		got := c.do("GET", path, "").want(t, 200, "")
		for _, s := range got.body["sales"].([]any) {
			seen = append(seen, s.(map[string]any)["id"])
		}
		path = ""
		if next, ok := got.body["next"].(string); ok {
			path = "/v1/sales?limit=2&after=" + next
		}
	}
	if fmt.Sprint(seen) != "[s0 s1 s2 s3 s4]" || pages != 3 {
		t.Errorf("%d pages: %v", pages, seen)
	}
	if got := newClient(t, newWorld()).do("GET", "/v1/sales", ""); fmt.Sprint(got.body) != "map[sales:[]]" {
		t.Errorf("no sale: %v", got.body)
	}
}

func TestCloseSale(t *testing.T) {
	w := newWorld()
	w.sell("phone", nil)
	c := newClient(t, w)
	for range 2 {
		if got := c.do("POST", "/v1/sales/phone/close", "", "Authorization", bearer).want(t, 200, ""); got.body["state"] != "closed" {
			t.Errorf("got %v", got.body)
		}
	}
	if w.records["phone"].ClosedAt.IsZero() {
		t.Error("the ledger does not know")
	}
	c.do("POST", "/v1/sales/phone/purchases", goodPurchase).want(t, 409, "sale_closed")
	c.do("POST", "/v1/sales/other/close", "", "Authorization", bearer).want(t, 404, "sale_not_found")
}

// To close a sale nothing need be said; what is said is read all the same.
func TestCloseSaleReadsItsBody(t *testing.T) {
	w := newWorld()
	w.sell("phone", nil)
	c := newClient(t, w)
	before := w.dump(t)
	send := func(body string, head ...string) answer {
		return c.do("POST", "/v1/sales/phone/close", body, append(head, "Authorization", bearer)...)
	}
	for _, body := range []string{`{"force":true}`, "[]", "null", "1"} {
		send(body).want(t, 422, "invalid")
	}
	for _, body := range []string{" ", "{", "{}x", "\xff"} {
		send(body).want(t, 400, "malformed_json")
	}
	send("{}", "Content-Type", "", "Content-Type", "text/plain").want(t, 415, "unsupported_media_type")
	send(`{"x":"`+strings.Repeat("a", maxBody)+`"}`).want(t, 413, "too_large")
	if w.dump(t) != before {
		t.Error("something changed")
	}
	send("{}").want(t, 200, "")
	send("", "Content-Type", "application/x-www-form-urlencoded").want(t, 200, "") // what curl -d '' sends
}

func TestAdminToken(t *testing.T) {
	w := newWorld()
	w.sell("phone", nil)
	before := w.dump(t)
	c := newClient(t, w)
	for _, header := range []string{"", "Bearer", "Bearer ", "Bearer wrong", "Bearer " + token + "x", "Bearer  " + token, "Basic " + token, token, "Bearer \xff"} {
		for _, path := range []string{"/v1/sales", "/v1/sales/phone/close"} {
			got := c.do("POST", path, goodSale, "Authorization", header).want(t, 401, "unauthorized")
			if got.header.Get("WWW-Authenticate") == "" {
				t.Error("no WWW-Authenticate")
			}
		}
	}
	c.do("POST", "/v1/sales", goodSale, "Authorization", bearer, "Authorization", bearer).want(t, 401, "unauthorized")
	if w.dump(t) != before {
		t.Error("something changed")
	}
	c.do("POST", "/v1/sales", goodSale, "Authorization", "bearer "+token).want(t, 409, "sale_exists") // schemes have no case
}

func TestAudit(t *testing.T) {
	w := newWorld()
	w.sell("phone", nil)
	var wait time.Duration
	var deep bool
	w.audit = func(_ string, gotWait time.Duration, gotDeep bool) (stock.Audit, error) {
		wait, deep = gotWait, gotDeep
		return stock.Audit{SaleID: "phone", Settled: true}, nil
	}
	c := newClient(t, w)
	got := c.do("GET", "/v1/sales/phone/audit?wait=1m0s&deep=true", "").want(t, 200, "")
	if got.body["settled"] != true || wait != time.Minute || !deep {
		t.Errorf("wait %s, deep %t, got %v", wait, deep, got.body)
	}
	w.audit = nil
	c.do("GET", "/v1/sales/phone/audit", "").want(t, 200, "")
	c.do("GET", "/v1/sales/other/audit", "").want(t, 404, "sale_not_found")
}

// An audit may wait longer than the server lets other answers take.
func TestAuditOutlastsTheWriteTimeout(t *testing.T) {
	w := newWorld()
	const writeTimeout = 20 * time.Millisecond
	w.audit = func(string, time.Duration, bool) (stock.Audit, error) {
		time.Sleep(5 * writeTimeout)
		return stock.Audit{SaleID: "phone"}, nil
	}
	server := httptest.NewUnstartedServer(New(w.options()))
	server.Config.WriteTimeout = writeTimeout
	server.Start()
	defer server.Close()
	response, err := server.Client().Get(server.URL + "/v1/sales/phone/audit?wait=1s")
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != 200 {
		t.Errorf("got %d", response.StatusCode)
	}
}
