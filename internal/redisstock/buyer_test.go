package redisstock

import (
	"errors"
	"testing"

	"flashsale/internal/stock"
)

func TestABuyersPendingPurchaseIsFound(t *testing.T) {
	f := onReal(t)
	sale := testSale(t, f)
	one(t, f.Atomic(), 7, sale, "ann", 2)
	want, err := f.Purchase(t.Context(), deductionOf(sale, "ann", 2).PurchaseID)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := f.PurchaseOf(t.Context(), sale.ID, "ann"); err != nil || got != want {
		t.Errorf("purchase is %+v (%v), want %+v", got, err, want)
	}
	for _, other := range [][2]string{{sale.ID, "Ann"}, {sale.ID, "bob"}, {"ghost", "ann"}} {
		if _, err := f.PurchaseOf(t.Context(), other[0], other[1]); !errors.Is(err, stock.ErrPurchaseNotFound) {
			t.Errorf("%v: error is %v, want ErrPurchaseNotFound", other, err)
		}
	}
}
