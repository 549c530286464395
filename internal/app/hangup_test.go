package app

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// Clients that hang up at any moment, in the queue, under the lock or while the
// script runs, leave neither a lock behind (its TTL is 30 s) nor half a
// purchase: counter and ledger agree on every one.
func TestClientsHangUp(t *testing.T) {
	cfg := real(t)
	migrate(t, cfg)
	v, _ := startAPI(t, cfg)
	startSyncer(t, cfg)
	for _, variant := range []string{"setnx", "watchdog", "watchdog-combining", "atomic"} {
		id := "phone-" + variant
		v.createSale(id, variant, 10_000)
		path := v.base + "/v1/sales/" + id + "/purchases"
		var clients sync.WaitGroup
		for c := range 16 {
			clients.Go(func() {
				for i := range 20 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.Int64N(int64(20*time.Millisecond))))
					r, err := http.NewRequestWithContext(ctx, "POST", path, strings.NewReader(purchaseOf(fmt.Sprintf("u%d-%d", c, i), 1)))
					if err != nil {
						t.Error(err)
					}
					r.Header.Set("Content-Type", "application/json")
					if response, err := v.http.Do(r); err == nil {
						response.Body.Close()
					}
					cancel()
				}
			})
		}
		clients.Wait()

		began := time.Now()
		v.do(201, "POST", "/v1/sales/"+id+"/purchases", purchaseOf("patient", 1))
		if took := time.Since(began); took > time.Second {
			t.Errorf("%s: the lock was left behind: %s", variant, took)
		}
		audit := v.do(200, "GET", "/v1/sales/"+id+"/audit?wait=30s&deep=true", "").body
		if audit["settled"] != true || audit["persisted"] != audit["accepted"] || audit["lost_updates"] != 0.0 || audit["undersold"] != 0.0 || audit["duplicates"] != 0.0 {
			t.Errorf("%s: %v", variant, audit)
		}
		t.Logf("%s: %v of 321 were accepted", variant, audit["accepted"])
	}
}
