package app

import (
	"fmt"
	"sync"
	"testing"
)

// Whatever variant is offered: 300 users race for 100 units, a safe one sells
// exactly 100, and the ledger agrees purchase by purchase; without a lock it
// oversells, and what was sold too much is rejected. The end-to-end tests race
// the plain variants more often, on the built programs.
func TestRaces(t *testing.T) {
	const stock, users, rounds = 100, 300, 2
	cfg := real(t)
	migrate(t, cfg)
	v, _ := startAPI(t, cfg)
	startSyncer(t, cfg)
	for _, variant := range cfg.Offered() {
		t.Run(variant, func(t *testing.T) {
			v := &visitor{t: t, base: v.base, http: v.http}
			for round := range rounds {
				race(v, fmt.Sprintf("race-%s-%d", variant, round), variant, stock, users)
			}
		})
	}
}

func race(v *visitor, id, variant string, stock, users int) {
	t := v.t
	t.Helper()
	v.createSale(id, variant, stock)
	start := make(chan struct{})
	var racers sync.WaitGroup
	var mu sync.Mutex
	outcomes := map[string]int{}
	for u := range users {
		racers.Go(func() {
			<-start
			outcome := "busy"
			for outcome == "busy" {
				got, err := v.send("POST", v.base+"/v1/sales/"+id+"/purchases", purchaseOf(fmt.Sprintf("u%d", u), 1))
				if err != nil {
					t.Error(err)
					return
				}
				outcome = got.header.Get("X-Outcome")
			}
			mu.Lock()
			outcomes[outcome]++
			mu.Unlock()
		})
	}
	close(start)
	racers.Wait()

	audit := v.do(200, "GET", "/v1/sales/"+id+"/audit?wait=30s&deep=true", "").body
	want := func(key string, value int) {
		if audit[key] != float64(value) {
			t.Errorf("%s: %s is %v, want %d; outcomes %v", id, key, audit[key], value, outcomes)
		}
	}
	want("accepted", outcomes["accepted"])
	want("persisted", stock)
	want("in_flight", 0)
	want("duplicates", 0)
	if deep := audit["deep"].(map[string]any); audit["settled"] != true || deep["compared"] != float64(outcomes["accepted"]) {
		t.Errorf("%s: audit %v", id, audit)
	}
	if variant != "none" {
		want("accepted", stock)
		want("oversold", 0)
		want("lost_updates", 0)
		want("undersold", 0)
		if outcomes["sold_out"] != users-stock {
			t.Errorf("%s: outcomes %v", id, outcomes)
		}
		return
	}
	if oversold, _ := audit["oversold"].(float64); oversold <= 0 || audit["rejected"] != oversold {
		t.Errorf("%s: none did not oversell, or it was not rejected: %v", id, audit)
	}
}

// One key, fifty requests at once: one purchase, one answer.
func TestSameKeyAtOnce(t *testing.T) {
	cfg := real(t)
	migrate(t, cfg)
	v, _ := startAPI(t, cfg)
	startSyncer(t, cfg)
	for _, variant := range []string{"setnx", "watchdog", "watchdog-combining", "atomic"} {
		v.createSale("phone-"+variant, variant, 100)
		answers := make([]string, 50)
		var wg sync.WaitGroup
		for i := range answers {
			wg.Go(func() {
				for {
					got, err := v.send("POST", v.base+"/v1/sales/phone-"+variant+"/purchases", purchaseOf("alice", 1), "Idempotency-Key", "k")
					if err != nil {
						t.Error(err)
						return
					}
					if answers[i] = got.text; got.status != 423 {
						return
					}
				}
			})
		}
		wg.Wait()
		for _, a := range answers {
			if a != answers[0] {
				t.Errorf("%s: %s and %s", variant, answers[0], a)
				break
			}
		}
		if got := v.do(200, "GET", "/v1/sales/phone-"+variant+"/audit?wait=30s&deep=true", ""); got.body["accepted"] != 1.0 || got.body["persisted"] != 1.0 {
			t.Errorf("%s: %s", variant, got.text)
		}
	}
}
