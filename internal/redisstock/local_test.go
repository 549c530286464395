package redisstock

import (
	"errors"
	"testing"

	"flashsale/internal/lock"
	"flashsale/internal/stock"
)

// TestLocalLockInTwoProcesses sells by two Sellers, each with a lock of its own,
// as two API processes have: one is in the gap between its read and its write
// while the other one buys.
func TestLocalLockInTwoProcesses(t *testing.T) {
	for _, test := range []struct {
		name       string
		noFence    bool
		want       error
		left, sold int64
	}{
		{"an update is lost", true, nil, 9, 4},
		// Which is luck: the fences are those of two counters that happen to
		// follow one clock.
		{"a fence from the clock hides it", false, stock.ErrStale, 7, 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := onReal(t)
			sale := testSale(t, f)
			process := func() *stock.Direct {
				locker := lock.NewLocal(lock.LocalOptions{NoFence: test.noFence})
				return stock.NewDirect(stock.DirectOptions{
					Sales: f.Store, Variants: map[string]stock.Variant{"watchdog": {Locker: locker, Counter: f.Guarded()}},
				})
			}
			first, second := process(), process()
			inTheGap(f, func() {
				if _, err := second.Purchase(t.Context(), stock.Request{SaleID: sale.ID, UserID: "bob", Quantity: 3}); err != nil {
					t.Error(err)
				}
			})
			_, err := first.Purchase(t.Context(), stock.Request{SaleID: sale.ID, UserID: "ann", Quantity: 1})
			if !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			wantLeft(t, f, sale, test.left, test.sold)
		})
	}
}
