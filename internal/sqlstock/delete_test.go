package sqlstock_test

import (
	"errors"
	"testing"

	"flashsale/internal/sqlstock"
	"flashsale/internal/stock"
)

func TestDeleteSalesLeavesOthersAlone(t *testing.T) {
	eachDatabase(t, func(t *testing.T, dsn func(testing.TB) string) {
		db := migrated(t, dsn(t), sqlstock.Options{})
		for _, id := range []string{"demo-1", "demo-2", "mine"} {
			insertSale(t, db, id, 100)
			events := make([]stock.Event, 20)
			for n := range events {
				events[n] = event(id, n)
			}
			if _, err := db.Settle(t.Context(), events); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if err := db.DeleteSales(t.Context(), []string{"demo-1", "demo-2", "unknown"}); err != nil {
				t.Fatal(err)
			}
		}
		for _, id := range []string{"demo-1", "demo-2"} {
			if _, err := db.Sale(t.Context(), id); !errors.Is(err, stock.ErrSaleNotFound) {
				t.Errorf("sale %s: %v", id, err)
			}
			if _, err := db.Purchase(t.Context(), event(id, 1).PurchaseID); !errors.Is(err, stock.ErrPurchaseNotFound) {
				t.Errorf("purchase of %s: %v", id, err)
			}
		}
		if got, err := db.Totals(t.Context(), "mine"); err != nil || got.Persisted != 20 {
			t.Errorf("the other sale: %+v, %v", got, err)
		}
	})
}
