package fallback_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"flashsale/internal/lock"
	"flashsale/internal/lock/fallback"
	"flashsale/internal/servers/servertest"
	"flashsale/internal/sqlstock"
	"flashsale/internal/stock"
)

// meeting makes two critical sections overlap: whoever comes to it waits for
// the holder of the other process.
type meeting chan struct{}

func (m meeting) with(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	select {
	case m <- struct{}{}:
		return nil
	case <-m:
		return nil
	case <-ctx.Done():
		return errors.New("the other process' holder didn't come")
	}
}

// degraded is one process whose breaker is open.
func degraded(t testing.TB) *fallback.Fallback {
	t.Helper()
	f := build(t, &store{answer: errDown}, fallback.Options{Mode: fallback.Degrade, Wait: bound, Failures: 1, Pause: time.Hour})
	release(t, acquire(t, f))
	return f
}

// Two degraded processes without a guard: both read one unit, both sell it.
func TestDegradedLockIsTakenForAGuard(t *testing.T) {
	var (
		met       = make(meeting)
		remaining atomic.Int64
		sold      atomic.Int64
		all       sync.WaitGroup
	)
	remaining.Store(1)
	for range 2 {
		process := degraded(t)
		all.Go(func() {
			err := lock.Do(t.Context(), process, "item", func(ctx context.Context, _ lock.Lease) error {
				read := remaining.Load()
				if err := met.with(ctx); err != nil || read < 1 {
					return errors.Join(err, errors.New("sold out"))
				}
				remaining.Store(read - 1)
				sold.Add(1)
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if sold.Load() != 2 || remaining.Load() != 0 {
		t.Errorf("sold %d, left %d: want the unit sold twice", sold.Load(), remaining.Load())
	}
}

// meetingCounter lets no Deduct begin before the other process is inside too.
type meetingCounter struct {
	stock.Counter
	met meeting
}

func (c meetingCounter) Deduct(ctx context.Context, fence uint64, batch []stock.Deduction) ([]stock.Result, error) {
	if fence != 0 {
		return nil, fmt.Errorf("fence %d under a degraded lease", fence)
	}
	if err := c.met.with(ctx); err != nil {
		return nil, err
	}
	return c.Counter.Deduct(ctx, fence, batch)
}

// The same two processes, each pair of their purchases at one moment, with the
// database as the last line of defence.
func TestDegradedSaleOversells(t *testing.T) {
	const units, buyersEach = 7, 10
	eachGuard(t, units, func(t *testing.T, db *sqlstock.DB, sellers [2]stock.Seller) {
		var accepted, soldOut atomic.Int64
		var all sync.WaitGroup
		for i, seller := range sellers {
			for buyer := range buyersEach {
				all.Go(func() {
					_, err := seller.Purchase(t.Context(), stock.Request{SaleID: "sale", UserID: fmt.Sprintf("buyer-%d-%d", i, buyer), Quantity: 1})
					switch {
					case err == nil:
						accepted.Add(1)
					case errors.Is(err, stock.ErrSoldOut):
						soldOut.Add(1)
					default:
						t.Error(err)
					}
				})
			}
		}
		all.Wait()
		totals, err := db.Totals(t.Context(), "sale")
		if err != nil {
			t.Fatal(err)
		}
		if accepted.Load() != units || soldOut.Load() != 2*buyersEach-units || totals.Persisted != units {
			t.Errorf("%d accepted, %d sold out, %d in the ledger; want %d of %d units sold", accepted.Load(), soldOut.Load(), totals.Persisted, units, units)
		}
	})
}

// One buyer at both processes at once: the unique index tells them apart.
func TestDegradedSaleSellsTwiceToOneBuyer(t *testing.T) {
	eachGuard(t, 7, func(t *testing.T, db *sqlstock.DB, sellers [2]stock.Seller) {
		var all sync.WaitGroup
		var accepted, refused atomic.Int64
		for i, seller := range sellers {
			all.Go(func() {
				_, err := seller.Purchase(t.Context(), stock.Request{SaleID: "sale", UserID: "bob", Quantity: 1, IdempotencyKey: fmt.Sprint(i)})
				switch {
				case err == nil:
					accepted.Add(1)
				case errors.Is(err, stock.ErrAlreadyBought):
					refused.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		all.Wait()
		if accepted.Load() != 1 || refused.Load() != 1 {
			t.Errorf("%d accepted, %d refused", accepted.Load(), refused.Load())
		}
	})
}

// eachGuard opens a sale in MySQL that two degraded processes sell.
func eachGuard(t *testing.T, units int64, test func(*testing.T, *sqlstock.DB, [2]stock.Seller)) {
	for name, counter := range map[string]func(*sqlstock.DB) stock.Counter{
		"mysql-conditional": (*sqlstock.DB).Conditional,
		"mysql-optimistic":  (*sqlstock.DB).Optimistic,
	} {
		t.Run(name, func(t *testing.T) {
			db, err := sqlstock.Open(servertest.SQL(t), sqlstock.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = db.Close() })
			if err := db.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			sale := stock.Sale{ID: "sale", ItemID: "item", Title: "Item", PriceCents: 100, Stock: units, PerUserLimit: 1, Variant: name, Fencing: true}
			if err := counter(db).Preload(t.Context(), sale); err != nil {
				t.Fatal(err)
			}
			met := make(meeting)
			var sellers [2]stock.Seller
			for i := range sellers {
				guarded := meetingCounter{counter(db), met}
				sellers[i] = stock.NewDirect(stock.DirectOptions{
					Sales:    guarded,
					Variants: map[string]stock.Variant{name: {Locker: degraded(t), Counter: guarded}},
				})
			}
			test(t, db, sellers)
		})
	}
}
