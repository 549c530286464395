package app

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

func TestWholeSaleEmbedded(t *testing.T) { wholeSale(t, embedded(t)) }
func TestWholeSale(t *testing.T)         { wholeSale(t, real(t)) }

// wholeSale goes through a sale of every variant from its creation to its
// audit, and ends both programs.
func wholeSale(t *testing.T, cfg Config) {
	migrate(t, cfg)
	check := noLeaks(t)
	v, endAPI := startAPI(t, cfg)
	_, endSyncer := startSyncer(t, cfg)
	v.do(200, "GET", "/readyz", "")

	for _, variant := range cfg.Offered() {
		oneSale(v, "phone-"+variant, variant)
	}
	scraped, err := v.send("GET", v.admin+"/metrics", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`flashsale_purchases_total{outcome="accepted",variant="atomic"}`, `flashsale_purchase_seconds_bucket`,
		`flashsale_lock_wait_seconds_bucket{variant="watchdog"`, `flashsale_lock_hold_seconds_bucket{variant="setnx"`, `flashsale_lock_acquisitions_total{outcome="acquired",variant="watchdog"}`,
		"flashsale_outbox_entries 0", "flashsale_relay_oldest_seconds 0",
	} {
		if !strings.Contains(scraped.text, want) {
			t.Errorf("no metric %s", want)
		}
	}
	for _, path := range []string{"/metrics", "/debug/pprof/"} { // on the admin listener alone
		v.do(404, "GET", path, "")
	}
	endAPI()
	endSyncer()
	check()
}

func oneSale(v *visitor, id, variant string) {
	t := v.t
	t.Helper()
	const stock, users = 10, 30
	v.createSale(id, variant, stock)
	path := "/v1/sales/" + id
	buy := func(status int, code, user string, quantity int, head ...string) reply {
		t.Helper()
		got := v.do(status, "POST", path+"/purchases", purchaseOf(user, quantity), head...)
		if got.code() != code {
			t.Errorf("%s: got %q, want %q", id, got.code(), code)
		}
		return got
	}
	first := buy(201, "", "early", 2, "Idempotency-Key", "k")
	if again := buy(201, "", "early", 2, "Idempotency-Key", "k"); again.text != first.text {
		t.Errorf("%s: repeated: %s, first: %s", id, again.text, first.text)
	}
	if got := v.do(200, "GET", path+"/purchases?user_id=early", ""); len(got.body["purchases"].([]any)) != 1 { // whether or not it is persisted by now
		t.Errorf("%s: right after it: %s", id, got.text)
	}
	fenced := strings.HasPrefix(variant, "watchdog") || slices.Contains([]string{"setnx", "fair", "function", "etcd", "zookeeper", "mysql-row"}, variant)
	locked := fenced || strings.HasPrefix(variant, "setnx-") || variant == "redlock" || variant == "local"
	if timed := first.header.Get("Server-Timing") != ""; timed != locked || (first.body["fence"] != 0.0) != fenced {
		t.Errorf("%s: Server-Timing %q, fence %v", id, first.header.Get("Server-Timing"), first.body["fence"])
	}
	buy(422, "idempotency_key_reused", "early", 1, "Idempotency-Key", "k")
	if got := buy(409, "already_bought", "early", 1); got.body["purchase_id"] != first.body["purchase_id"] {
		t.Errorf("%s: %s", id, got.text)
	}
	buy(422, "invalid", "greedy", 3)

	replies := make([]reply, users)
	var wg sync.WaitGroup
	for i := range users {
		wg.Go(func() {
			for { // contention is no answer
				got, err := v.send("POST", v.base+path+"/purchases", purchaseOf(fmt.Sprintf("u%d", i), 1))
				if err != nil {
					t.Error(err)
				}
				if replies[i] = got; got.status != 423 {
					return
				}
			}
		})
	}
	wg.Wait()
	accepted := 2
	for _, r := range replies {
		switch {
		case r.status == 201:
			accepted++
		case r.code() != "sold_out":
			t.Errorf("%s: %d %s", id, r.status, r.text)
		}
	}
	if variant != "none" { // whose counter may well have been set back
		buy(409, "sold_out", "late", 2)
	}
	v.do(200, "POST", path+"/close", "", "Authorization", "Bearer "+testToken)
	buy(409, "sale_closed", "late", 1)

	audit := v.do(200, "GET", path+"/audit?wait=30s&deep=true", "").body
	if audit["settled"] != true || audit["accepted"] != float64(accepted) {
		t.Errorf("%s: %d accepted, audit %v", id, accepted, audit)
	}
	if variant == "none" {
		if audit["persisted"] != float64(stock) || audit["rejected"] != audit["oversold"] {
			t.Errorf("%s: audit %v", id, audit)
		}
	} else if audit["accepted"] != float64(stock) || audit["persisted"] != float64(stock) || audit["oversold"] != 0.0 || audit["lost_updates"] != 0.0 ||
		audit["undersold"] != 0.0 || audit["duplicates"] != 0.0 {
		t.Errorf("%s: audit %v", id, audit)
	}
	if got := v.do(200, "GET", "/v1/purchases/"+first.body["purchase_id"].(string), ""); got.body["status"] != "persisted" {
		t.Errorf("%s: %s", id, got.text)
	}
	if got := v.do(200, "GET", path+"/purchases?user_id=early", ""); len(got.body["purchases"].([]any)) != 1 {
		t.Errorf("%s: %s", id, got.text)
	}
	if got := v.do(200, "GET", path, ""); got.body["state"] != "closed" {
		t.Errorf("%s: %s", id, got.text)
	}
}
