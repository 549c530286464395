package sqlstock_test

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"flashsale/internal/rediskey"
	"flashsale/internal/sqlstock"
	"flashsale/internal/stock"
	"flashsale/internal/stock/stocktest"
)

var counters = map[string]func(*sqlstock.DB) stock.Counter{
	"conditional": (*sqlstock.DB).Conditional,
	"optimistic":  (*sqlstock.DB).Optimistic,
}

func TestCounters(t *testing.T) {
	eachCounter(t, stocktest.CounterSuite)
}

func TestCountersNeedNoLock(t *testing.T) {
	eachCounter(t, stocktest.CounterRace)
}

func eachCounter(t *testing.T, suite func(*testing.T, func(*testing.T) stocktest.Rig)) {
	for name, counter := range counters {
		t.Run(name, func(t *testing.T) {
			eachDatabase(t, func(t *testing.T, dsn func(testing.TB) string) {
				suite(t, func(t *testing.T) stocktest.Rig { return rigOf(t, dsn(t), counter) })
			})
		})
	}
}

func rigOf(t *testing.T, dsn string, counter func(*sqlstock.DB) stock.Counter) stocktest.Rig {
	var clock atomic.Pointer[time.Time]
	now := func() time.Time {
		if set := clock.Load(); set != nil {
			return *set
		}
		return time.Now()
	}
	db := migrated(t, dsn, sqlstock.Options{Attempts: 100, Now: now})
	var lose atomic.Bool
	rig := stocktest.Rig{
		Counter: sqlstock.Losing(counter(db), lose.Load), Desk: desk{db}, Outbox: noOutbox{db: db},
		LoseAnswers: lose.Store, Persists: true,
	}
	if sqlstock.IsStandIn(dsn) { // a server judges by its own clock
		rig.SetClock = func(now time.Time) { clock.Store(&now) }
	}
	return rig
}

// desk is a ledger as a Desk.
type desk struct{ *sqlstock.DB }

func (d desk) Close(ctx context.Context, saleID string) error {
	return d.CloseSale(ctx, saleID, time.Now())
}

// noOutbox shows the purchases that are in the ledger as the events that an
// outbox would have had, in the order in which they took their units.
type noOutbox struct {
	stock.Outbox
	db *sqlstock.DB
}

func (o noOutbox) Read(ctx context.Context, shard int, after string, _ int, _ time.Duration) ([]stock.OutboxEntry, error) {
	sales, err := o.db.Sales(ctx, "", 100)
	if err != nil || after != "" {
		return nil, err
	}
	var entries []stock.OutboxEntry
	for _, sale := range sales {
		if rediskey.Shard(sale.ID) != shard {
			continue
		}
		var events []stock.Event
		left := map[string]int64{}
		err := o.db.EachPurchase(ctx, sale.ID, func(p stock.Purchase) error {
			var remaining int64
			err := sqlstock.Pool(o.db).QueryRowContext(ctx, "SELECT remaining FROM answers WHERE purchase_id = ?", p.PurchaseID).Scan(&remaining)
			left[p.PurchaseID] = remaining
			events = append(events, stock.Deduction{
				PurchaseID: p.PurchaseID, SaleID: p.SaleID, ItemID: sale.ItemID, UserID: p.UserID, Quantity: p.Quantity,
				PriceCents: p.PriceCents, Variant: sale.Variant, At: p.CreatedAt,
			}.Event(p.Fence))
			return err
		})
		if err != nil {
			return nil, err
		}
		slices.SortFunc(events, func(a, b stock.Event) int { return cmp.Compare(left[b.PurchaseID], left[a.PurchaseID]) })
		for _, event := range events {
			text, _ := json.Marshal(event)
			entries = append(entries, stock.OutboxEntry{ID: event.PurchaseID, Events: [][]byte{text}})
		}
	}
	return entries, nil
}
