package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"flashsale/internal/lock"
	"flashsale/internal/stock"
)

const token = "s3cret"

// world holds the ports of one test in memory, with errors to be set.
type world struct {
	mu        sync.Mutex
	sales     map[string]*stock.Snapshot // the counter's
	purchases map[string]stock.Purchase  // the counter's
	records   map[string]stock.SaleRecord
	rows      map[string]stock.Purchase

	counterErr, ledgerErr, preloadErr error
	seller                            stock.Seller // nil: a direct one on this counter
	locker                            lock.Locker
	checks                            []Check
	draining                          bool
	audit                             func(saleID string, wait time.Duration, deep bool) (stock.Audit, error)
}

func newWorld() *world {
	return &world{
		sales: map[string]*stock.Snapshot{}, purchases: map[string]stock.Purchase{},
		records: map[string]stock.SaleRecord{}, rows: map[string]stock.Purchase{},
		locker: freeLock{},
	}
}

func (w *world) options() Options {
	seller := w.seller
	if seller == nil {
		seller = stock.NewDirect(stock.DirectOptions{Sales: w, Variants: map[string]stock.Variant{
			"atomic": {Counter: w}, "watchdog": {Locker: w.locker, Counter: w},
		}})
	}
	return Options{
		Seller: seller, Counter: w, Desk: desk{w}, Ledger: ledger{w}, Audit: w.doAudit,
		Variants: []string{"atomic", "watchdog"}, AdminToken: token,
		Checks: w.checks, Draining: func() bool { return w.draining },
	}
}

// dump is the whole state, for comparing before and after.
func (w *world) dump(t *testing.T) string {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	data, err := json.Marshal([]any{w.sales, w.purchases, w.records, w.rows})
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// sell puts a sale of 10 units into counter and ledger.
func (w *world) sell(id string, change func(*stock.Sale)) {
	sale := stock.Sale{ID: id, ItemID: id, Title: id, PriceCents: 100, Stock: 10, PerUserLimit: 2, Variant: "atomic", Fencing: true}
	if change != nil {
		change(&sale)
	}
	w.sales[id] = &stock.Snapshot{Sale: sale, Remaining: sale.Stock}
	w.records[id] = stock.SaleRecord{Sale: sale, Remaining: sale.Stock}
}

func (w *world) doAudit(_ context.Context, saleID string, wait time.Duration, deep bool) (stock.Audit, error) {
	if w.audit != nil {
		return w.audit(saleID, wait, deep)
	}
	s, err := w.Snapshot(context.Background(), saleID)
	return stock.NewAudit(s, stock.LedgerTotals{}), err
}

func (w *world) Preload(_ context.Context, sale stock.Sale) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := cmp.Or(w.preloadErr, w.counterErr); err != nil {
		return err
	}
	if old, ok := w.sales[sale.ID]; !ok {
		w.sales[sale.ID] = &stock.Snapshot{Sale: sale, Remaining: sale.Stock}
	} else if !old.SameTerms(sale) {
		return stock.ErrSaleExists
	}
	return nil
}

func (w *world) Snapshot(_ context.Context, saleID string) (stock.Snapshot, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.snapshot(saleID)
}

func (w *world) snapshot(saleID string) (stock.Snapshot, error) {
	if w.counterErr != nil {
		return stock.Snapshot{}, w.counterErr
	}
	s, ok := w.sales[saleID]
	if !ok {
		return stock.Snapshot{}, stock.ErrSaleNotFound
	}
	snapshot := *s
	snapshot.State = s.StateAt(time.Now(), s.State == stock.StateClosed)
	return snapshot, nil
}

func (w *world) Deduct(_ context.Context, fence uint64, batch []stock.Deduction) ([]stock.Result, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s, err := w.snapshot(batch[0].SaleID)
	if err != nil {
		return nil, err
	}
	known, buyers := map[string]stock.Answer{}, map[string]string{}
	for id, p := range w.purchases {
		known[id] = stock.Answer{Quantity: p.Quantity, Fence: p.Fence}
		buyers[p.UserID] = id
	}
	results := stock.Standing{State: s.State, Limit: s.PerUserLimit, Remaining: s.Remaining, Known: known, Buyers: buyers}.Decide(fence, batch)
	for i, r := range results {
		if d := batch[i]; r.Err == nil && !r.Replayed {
			w.sales[d.SaleID].Remaining -= d.Quantity
			w.sales[d.SaleID].Accepted += d.Quantity
			w.purchases[d.PurchaseID] = stock.Purchase{PurchaseID: d.PurchaseID, SaleID: d.SaleID, UserID: d.UserID,
				Quantity: d.Quantity, PriceCents: d.PriceCents, Fence: fence, Status: stock.StatusPending, CreatedAt: d.At}
		}
	}
	return results, nil
}

type desk struct{ *world }

func (d desk) Close(_ context.Context, saleID string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.counterErr != nil {
		return d.counterErr
	}
	s, ok := d.sales[saleID]
	if !ok {
		return stock.ErrSaleNotFound
	}
	s.State = stock.StateClosed
	return nil
}

func (d desk) Purchase(_ context.Context, id string) (stock.Purchase, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p, ok := d.purchases[id]
	if d.counterErr == nil && !ok {
		return p, stock.ErrPurchaseNotFound
	}
	return p, d.counterErr
}

func (d desk) PurchaseOf(_ context.Context, saleID, userID string) (stock.Purchase, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.purchases {
		if p.SaleID == saleID && p.UserID == userID {
			return p, d.counterErr
		}
	}
	return stock.Purchase{}, cmp.Or(d.counterErr, stock.ErrPurchaseNotFound)
}

func (d desk) EachPurchase(context.Context, string, func(stock.Purchase) error) error {
	return errors.ErrUnsupported
}

type ledger struct{ *world }

func (l ledger) InsertSale(_ context.Context, sale stock.Sale) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ledgerErr != nil {
		return l.ledgerErr
	}
	if old, ok := l.records[sale.ID]; ok && !old.SameTerms(sale) {
		return stock.ErrSaleExists
	}
	l.records[sale.ID] = stock.SaleRecord{Sale: sale, Remaining: sale.Stock}
	return nil
}

func (l ledger) Sale(_ context.Context, id string) (stock.SaleRecord, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, ok := l.records[id]
	if l.ledgerErr == nil && !ok {
		return r, stock.ErrSaleNotFound
	}
	return r, l.ledgerErr
}

func (l ledger) Sales(_ context.Context, after string, limit int) ([]stock.SaleRecord, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := slices.SortedFunc(maps.Values(l.records), func(a, b stock.SaleRecord) int { return strings.Compare(a.ID, b.ID) })
	all = slices.DeleteFunc(all, func(r stock.SaleRecord) bool { return r.ID <= after })
	return all[:min(limit, len(all))], l.ledgerErr
}

func (l ledger) CloseSale(_ context.Context, id string, at time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.records[id]
	r.ClosedAt = at
	l.records[id] = r
	return l.ledgerErr
}

func (l ledger) Purchase(_ context.Context, id string) (stock.Purchase, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p, ok := l.rows[id]
	if l.ledgerErr == nil && !ok {
		return p, stock.ErrPurchaseNotFound
	}
	return p, l.ledgerErr
}

func (l ledger) PurchasesOf(_ context.Context, saleID, userID string) ([]stock.Purchase, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []stock.Purchase
	for _, p := range l.rows {
		if p.SaleID == saleID && p.UserID == userID {
			found = append(found, p)
		}
	}
	return found, l.ledgerErr
}

func (l ledger) Settle(context.Context, []stock.Event) ([]stock.Verdict, error) {
	return nil, errors.ErrUnsupported
}

func (l ledger) EachPurchase(context.Context, string, func(stock.Purchase) error) error {
	return errors.ErrUnsupported
}

func (l ledger) Totals(context.Context, string) (stock.LedgerTotals, error) {
	return stock.LedgerTotals{}, nil
}

// freeLock is granted at once, with a fence.
type freeLock struct{}

func (freeLock) Acquire(_ context.Context, key string) (lock.Lease, error) {
	return freeLease(key), nil
}

type freeLease string

func (l freeLease) Key() string                 { return string(l) }
func (freeLease) Fence() uint64                 { return 7 }
func (freeLease) Lost() <-chan struct{}         { return nil }
func (freeLease) Release(context.Context) error { return nil }

// sellerFunc is a Seller of one function.
type sellerFunc func(context.Context, stock.Request) (stock.Receipt, error)

func (f sellerFunc) Purchase(ctx context.Context, r stock.Request) (stock.Receipt, error) {
	return f(ctx, r)
}
