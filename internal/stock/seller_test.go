package stock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"flashsale/internal/lock"
	"flashsale/internal/stock"
	"flashsale/internal/stock/stocktest"
)

// fakeLock grants at once, takes its time to, and does as a test says.
type fakeLock struct {
	fence   uint64
	wait    time.Duration
	refuse  error
	release error
	lost    chan struct{}
	retired int
}

func (l *fakeLock) Acquire(_ context.Context, key string) (lock.Lease, error) {
	time.Sleep(l.wait)
	return fakeLease{l, key}, l.refuse
}

type fakeLease struct {
	*fakeLock
	key string
}

func (l fakeLease) Key() string           { return l.key }
func (l fakeLease) Fence() uint64         { return l.fence }
func (l fakeLease) Lost() <-chan struct{} { return l.lost }
func (l fakeLease) Retire()               { l.retired++ }
func (l fakeLease) Release(context.Context) error {
	time.Sleep(l.wait)
	return l.fakeLock.release
}

// shop is a Seller with one sale of 10 units.
type shop struct {
	stock.DirectOptions
	memory *stocktest.Memory
	locker *fakeLock
	sale   stock.Sale
}

func newShop() *shop {
	memory, locker := &stocktest.Memory{}, &fakeLock{fence: 42}
	return &shop{
		memory: memory, locker: locker,
		DirectOptions: stock.DirectOptions{
			Sales:    memory,
			Variants: map[string]stock.Variant{"locked": {Locker: locker, Counter: memory}, "free": {Counter: memory}},
		},
		sale: stock.Sale{
			ID: "sale", ItemID: "item", Title: "Thing", PriceCents: 5, Stock: 10, PerUserLimit: 2,
			Variant: "locked", Fencing: true,
		},
	}
}

func (s *shop) open(t *testing.T) *stock.Direct {
	t.Helper()
	if err := s.memory.Preload(t.Context(), s.sale); err != nil {
		t.Fatal(err)
	}
	return stock.NewDirect(s.DirectOptions)
}

func (s *shop) wantLeft(t *testing.T, want int64) {
	t.Helper()
	s.memory.Hook = nil
	if snapshot, err := s.memory.Snapshot(t.Context(), s.sale.ID); err != nil || snapshot.Remaining != want {
		t.Errorf("%d units left (%v), want %d", snapshot.Remaining, err, want)
	}
}

var request = stock.Request{SaleID: "sale", UserID: "ann", Quantity: 2, IdempotencyKey: "key"}

func TestPurchase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shop := newShop()
		shop.locker.wait = 3 * time.Second
		shop.sale.Work = stock.WorkRange{Min: 4 * time.Second, Max: 4 * time.Second}
		receipt, err := shop.open(t).Purchase(t.Context(), request)
		want := stock.Receipt{
			PurchaseID: stock.PurchaseID("sale", "ann", "key"), SaleID: "sale", Quantity: 2, Remaining: 8, Fence: 42, Variant: "locked",
			Locked: true, LockWait: 3 * time.Second, LockHold: 7 * time.Second,
		}
		if err != nil || receipt != want {
			t.Errorf("receipt is %+v (%v), want %+v", receipt, err, want)
		}
		purchase, err := shop.memory.Purchase(t.Context(), want.PurchaseID)
		if err != nil || purchase.PriceCents != 5 || purchase.UserID != "ann" {
			t.Errorf("purchase is %+v, %v", purchase, err)
		}
	})
}

func TestPurchaseWithoutLock(t *testing.T) {
	shop := newShop()
	shop.sale.Variant = "free"
	receipt, err := shop.open(t).Purchase(t.Context(), request)
	if err != nil || receipt.Locked || receipt.LockWait != 0 || receipt.LockHold != 0 || receipt.Fence != 0 || receipt.Remaining != 8 {
		t.Errorf("receipt is %+v, %v", receipt, err)
	}
}

func TestPurchaseWithFencingOff(t *testing.T) {
	shop := newShop()
	shop.sale.Fencing = false
	if receipt, err := shop.open(t).Purchase(t.Context(), request); err != nil || receipt.Fence != 0 {
		t.Errorf("fence is %d, %v, want 0", receipt.Fence, err)
	}
}

func TestPurchaseRepeated(t *testing.T) {
	shop := newShop()
	seller := shop.open(t)
	first, err := seller.Purchase(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	shop.locker.fence++
	again, err := seller.Purchase(t.Context(), request)
	if err != nil || !again.Replayed || again.PurchaseID != first.PurchaseID || again.Remaining != first.Remaining || again.Fence != first.Fence {
		t.Errorf("first %+v, then %+v (%v)", first, again, err)
	}
	other := request
	other.Quantity = 1
	if _, err := seller.Purchase(t.Context(), other); !errors.Is(err, stock.ErrKeyReused) {
		t.Errorf("other quantity: error is %v", err)
	}
	other.IdempotencyKey = "" // not a repetition, but a second purchase
	var bought *stock.AlreadyBoughtError
	if _, err := seller.Purchase(t.Context(), other); !errors.As(err, &bought) || bought.PurchaseID != first.PurchaseID {
		t.Errorf("other key: error is %v, want already bought as %s", err, first.PurchaseID)
	}
	shop.wantLeft(t, 8)
}

func TestPurchaseRefusedBeforeTheLock(t *testing.T) {
	for _, test := range []struct {
		name    string
		change  func(*shop)
		request stock.Request
		want    error
	}{
		{"unknown sale", func(*shop) {}, stock.Request{SaleID: "ghost", UserID: "ann", Quantity: 1}, stock.ErrSaleNotFound},
		{"counter away", func(s *shop) {
			s.Sales = failing{stock.ErrUnavailable}
		}, request, stock.ErrUnavailable},
		{"variant not offered", func(s *shop) { s.sale.Variant = "zookeeper" }, request, stock.ErrUnavailable},
		{"no entropy", func(s *shop) { s.Random = strings.NewReader("short") },
			stock.Request{SaleID: "sale", UserID: "ann", Quantity: 1}, stock.ErrUnavailable},
	} {
		t.Run(test.name, func(t *testing.T) {
			shop := newShop()
			test.change(shop)
			seller := shop.open(t)
			if receipt, err := seller.Purchase(t.Context(), test.request); !errors.Is(err, test.want) || receipt.Locked {
				t.Errorf("receipt is %+v, error %v, want %v", receipt, err, test.want)
			}
			shop.wantLeft(t, 10)
		})
	}
	var invalid *stock.InvalidError
	if _, err := newShop().open(t).Purchase(t.Context(), stock.Request{}); !errors.As(err, &invalid) {
		t.Errorf("error is %v, want an InvalidError", err)
	}
}

type failing struct{ err error }

func (f failing) Snapshot(context.Context, string) (stock.Snapshot, error) {
	return stock.Snapshot{}, f.err
}

func TestPurchaseRefusedByTheLock(t *testing.T) {
	for refusal, want := range map[error]error{
		lock.ErrNotAcquired:                           stock.ErrBusy,
		fmt.Errorf("x: %w", lock.ErrNotAcquired):      stock.ErrBusy,
		lock.ErrUnavailable:                           stock.ErrUnavailable,
		context.DeadlineExceeded:                      stock.ErrUnavailable,
		fmt.Errorf("canceled: %w", context.Canceled):  stock.ErrUnavailable,
		errors.New("an error that nobody thought of"): stock.ErrUnavailable,
	} {
		synctest.Test(t, func(t *testing.T) {
			shop := newShop()
			shop.locker.refuse, shop.locker.wait = refusal, time.Second
			receipt, err := shop.open(t).Purchase(t.Context(), request)
			if !errors.Is(err, want) || !errors.Is(err, refusal) || errors.Is(err, stock.ErrOutcomeUnknown) {
				t.Errorf("lock says %v: error is %v, want %v", refusal, err, want)
			}
			if !receipt.Locked || receipt.LockWait != time.Second || receipt.LockHold != 0 {
				t.Errorf("lock says %v: receipt is %+v", refusal, receipt)
			}
			shop.wantLeft(t, 10)
		})
	}
}

// TestPurchaseAndALostLock loses the lease while the purchase is being made.
func TestPurchaseAndALostLock(t *testing.T) {
	for _, test := range []struct {
		name string
		hook func(lost chan struct{}, ctx context.Context) (bool, error) // instead of the deduction
		want error
		left int64
	}{
		{"before the write", func(lost chan struct{}, ctx context.Context) (bool, error) {
			close(lost)
			<-ctx.Done()
			return false, fmt.Errorf("%w: %w", stock.ErrUnavailable, context.Cause(ctx))
		}, stock.ErrStale, 10},
		{"during the write, which took place", func(lost chan struct{}, ctx context.Context) (bool, error) {
			close(lost)
			<-ctx.Done()
			return true, fmt.Errorf("%w: %w", stock.ErrOutcomeUnknown, context.Cause(ctx))
		}, stock.ErrOutcomeUnknown, 8},
		{"during the write, which did not", func(lost chan struct{}, ctx context.Context) (bool, error) {
			close(lost)
			<-ctx.Done()
			return false, fmt.Errorf("%w: %w", stock.ErrOutcomeUnknown, context.Cause(ctx))
		}, stock.ErrOutcomeUnknown, 10},
		{"after the write", func(lost chan struct{}, ctx context.Context) (bool, error) {
			close(lost)
			<-ctx.Done()
			return true, nil
		}, nil, 8},
		{"not at all, the counter says stale", func(chan struct{}, context.Context) (bool, error) {
			return false, stock.ErrStale
		}, stock.ErrStale, 10},
	} {
		t.Run(test.name, func(t *testing.T) {
			shop := newShop()
			shop.locker.lost = make(chan struct{})
			shop.Variants["locked"] = stock.Variant{Locker: shop.locker, Counter: hooked{shop.memory, func(ctx context.Context) (bool, error) {
				return test.hook(shop.locker.lost, ctx)
			}}}
			receipt, err := shop.open(t).Purchase(t.Context(), request)
			if !errors.Is(err, test.want) {
				t.Errorf("error is %v, want %v", err, test.want)
			}
			for _, other := range []error{stock.ErrStale, stock.ErrOutcomeUnknown} {
				if other != test.want && errors.Is(err, other) {
					t.Errorf("error is %v, which is %v too", err, other)
				}
			}
			if (receipt.Remaining == 8) != (test.want == nil) {
				t.Errorf("receipt is %+v", receipt)
			}
			shop.wantLeft(t, test.left)
		})
	}
}

// hooked asks a hook that sees the context first.
type hooked struct {
	*stocktest.Memory
	hook func(ctx context.Context) (apply bool, err error)
}

func (h hooked) Deduct(ctx context.Context, fence uint64, batch []stock.Deduction) ([]stock.Result, error) {
	apply, hookErr := h.hook(ctx)
	if !apply {
		return nil, hookErr
	}
	results, err := h.Memory.Deduct(ctx, fence, batch)
	return results, errors.Join(err, hookErr)
}

func TestPurchaseStandsWhenTheReleaseFails(t *testing.T) {
	for _, failure := range []error{lock.ErrLost, lock.ErrUnavailable} {
		shop := newShop()
		shop.locker.release = failure
		if receipt, err := shop.open(t).Purchase(t.Context(), request); err != nil || receipt.Remaining != 8 {
			t.Errorf("release says %v: receipt is %+v, error %v", failure, receipt, err)
		}
	}
}

func TestPurchaseWhoseAnswerIsLost(t *testing.T) {
	shop := newShop()
	seller := shop.open(t)
	shop.memory.Hook = func(op string) (bool, error) {
		if op == stocktest.OpDeduct {
			return true, stock.ErrOutcomeUnknown
		}
		return true, nil
	}
	if _, err := seller.Purchase(t.Context(), request); !errors.Is(err, stock.ErrOutcomeUnknown) {
		t.Errorf("error is %v, want ErrOutcomeUnknown", err)
	}
	if shop.locker.retired != 1 { // it may still happen, and must not under the next holder's fence
		t.Error("the lease may be handed on")
	}
	shop.wantLeft(t, 8) // nothing was put back: it may have been sold, and was
	receipt, err := seller.Purchase(t.Context(), request)
	if err != nil || !receipt.Replayed || receipt.Remaining != 8 || shop.locker.retired != 1 {
		t.Errorf("repeated: receipt is %+v, %v", receipt, err)
	}
	shop.wantLeft(t, 8)
}

func TestPurchaseGivenUpDuringWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shop := newShop()
		shop.sale.Work = stock.WorkRange{Min: 5 * time.Second, Max: 10 * time.Second}
		seller := shop.open(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := seller.Purchase(ctx, request)
		if !errors.Is(err, stock.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, stock.ErrStale) {
			t.Errorf("caller gave up: error is %v, want ErrUnavailable", err)
		}
		shop.locker.lost = make(chan struct{})
		time.AfterFunc(time.Second, func() { close(shop.locker.lost) })
		if _, err := seller.Purchase(t.Context(), request); !errors.Is(err, stock.ErrStale) {
			t.Errorf("lock lost: error is %v, want ErrStale", err)
		}
		shop.wantLeft(t, 10)
	})
}

func TestWorkIsWithinItsRange(t *testing.T) {
	shop := newShop()
	shop.sale.Work = stock.WorkRange{Min: 50, Max: 53}
	seen := make(map[time.Duration]int)
	shop.Sleep = func(_ context.Context, d time.Duration) error {
		seen[d]++
		return nil
	}
	seller := shop.open(t)
	for n := range 200 {
		seller.Purchase(t.Context(), stock.Request{SaleID: "sale", UserID: fmt.Sprint(n), Quantity: 1})
	}
	if len(seen) != 4 || seen[50] == 0 || seen[53] == 0 {
		t.Errorf("durations are %v, want 50 to 53", seen)
	}
}
