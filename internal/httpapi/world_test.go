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
	"flashsale/internal/rediskey"
	"flashsale/internal/stock"
	"flashsale/internal/stock/stocktest"
)

const token = "s3cret"

// world holds the ports of one test in memory, with errors to be set.
type world struct {
	stocktest.Memory // counter and desk

	mu      sync.Mutex // guards the ledger
	records map[string]stock.SaleRecord
	rows    map[string]stock.Purchase

	counterErr, ledgerErr, preloadErr error
	seller                            stock.Seller      // nil: a direct one on this counter
	locker                            lock.Locker       // of the variant watchdog; nil: a free one
	lacking                           map[string]string // variants
	checks                            []Check
	draining                          bool
	audit                             func(saleID string, wait time.Duration, deep bool) (stock.Audit, error)
}

func newWorld() *world {
	w := &world{records: map[string]stock.SaleRecord{}, rows: map[string]stock.Purchase{}}
	w.Hook = func(op string) (apply bool, err error) {
		err = w.counterErr
		if op == stocktest.OpPreload {
			err = cmp.Or(w.preloadErr, err)
		}
		return err == nil, err
	}
	return w
}

func (w *world) options() Options {
	seller, locker := w.seller, w.locker
	if locker == nil {
		locker = freeLock{}
	}
	if seller == nil {
		seller = stock.NewDirect(stock.DirectOptions{Sales: w, Variants: map[string]stock.Variant{
			"atomic": {Counter: w}, "watchdog": {Locker: locker, Counter: w},
		}})
	}
	return Options{
		Seller: seller, Counter: w, Desk: w, Ledger: ledger{w}, Audit: w.doAudit,
		Variants: []string{"atomic", "watchdog"}, Lacking: w.lacking, AdminToken: token,
		Checks: w.checks, Draining: func() bool { return w.draining },
	}
}

// dump is the whole state, for comparing before and after. A sale is in the
// ledger before it is in the counter.
func (w *world) dump(t *testing.T) string {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	state := []any{w.records, w.rows}
	for _, id := range slices.Sorted(maps.Keys(w.records)) {
		snapshot, err := w.Snapshot(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		entries, _, _ := w.Depth(t.Context(), rediskey.Shard(id))
		state = append(state, snapshot, entries)
	}
	data, err := json.Marshal(state)
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
	_ = w.Preload(context.Background(), sale) // in memory nothing fails that isn't told to
	w.records[id] = stock.SaleRecord{Sale: sale, Remaining: sale.Stock}
}

func (w *world) doAudit(_ context.Context, saleID string, wait time.Duration, deep bool) (stock.Audit, error) {
	if w.audit != nil {
		return w.audit(saleID, wait, deep)
	}
	s, err := w.Snapshot(context.Background(), saleID)
	return stock.NewAudit(s, stock.LedgerTotals{}), err
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

func (l ledger) NotePreload(context.Context, string, bool) error { return errors.ErrUnsupported }

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

// takenLock is never granted.
type takenLock struct{}

func (takenLock) Acquire(context.Context, string) (lock.Lease, error) {
	return nil, lock.ErrNotAcquired
}

// sellerFunc is a Seller of one function.
type sellerFunc func(context.Context, stock.Request) (stock.Receipt, error)

func (f sellerFunc) Purchase(ctx context.Context, r stock.Request) (stock.Receipt, error) {
	return f(ctx, r)
}
