package sqlstock_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"flashsale/internal/sqlstock"
	"flashsale/internal/stock"
)

// Whoever is overtaken each time is told that it is busy, nothing else, and has
// nothing deducted.
func TestOptimisticGivesUp(t *testing.T) {
	db := migrated(t, mysqlDSN(t), sqlstock.Options{Attempts: 1})
	counter := db.Optimistic()
	sale := stock.Sale{ID: "sale", ItemID: "item", Title: "Thing", PriceCents: 1, Stock: 1000, PerUserLimit: 1, Variant: "mysql-optimistic", Fencing: true}
	if err := counter.Preload(t.Context(), sale); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	accepted, busy := int64(0), 0
	for round := 0; busy == 0 && round < 50; round++ {
		var buyers sync.WaitGroup
		for n := range 16 {
			buyers.Go(func() {
				user := fmt.Sprintf("u%d-%d", round, n)
				results, err := counter.Deduct(t.Context(), 0, []stock.Deduction{{
					PurchaseID: stock.PurchaseID(sale.ID, user, "key"), SaleID: sale.ID, ItemID: sale.ItemID, UserID: user,
					Quantity: 1, PriceCents: 1, Variant: sale.Variant, At: time.Now(),
				}})
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil && results[0].Err == nil:
					accepted++
				case errors.Is(err, stock.ErrBusy) && !errors.Is(err, stock.ErrUnavailable) && !errors.Is(err, stock.ErrOutcomeUnknown):
					busy++
				default:
					t.Errorf("error is %v, want ErrBusy or none", err)
				}
			})
		}
		buyers.Wait()
	}
	if busy == 0 {
		t.Error("nobody was overtaken")
	}
	snapshot, err := counter.Snapshot(t.Context(), sale.ID)
	if err != nil || snapshot.Accepted != accepted || snapshot.Remaining != sale.Stock-accepted {
		t.Errorf("%d accepted, snapshot %+v, %v", accepted, snapshot, err)
	}
}

// A server that isn't there has deducted nothing.
func TestCounterWithoutItsServer(t *testing.T) {
	for name, of := range counters {
		t.Run(name, func(t *testing.T) {
			db := open(t, "user:secret@tcp(127.0.0.1:1)/nothing?timeout=100ms", sqlstock.Options{})
			_, err := of(db).Deduct(t.Context(), 0, []stock.Deduction{{SaleID: "sale", PurchaseID: "x", UserID: "u", Quantity: 1}})
			if !errors.Is(err, stock.ErrUnavailable) || errors.Is(err, stock.ErrOutcomeUnknown) {
				t.Errorf("error is %v, want ErrUnavailable", err)
			}
		})
	}
}
