package audit_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"flashsale/internal/audit"
	"flashsale/internal/stock"
	"flashsale/internal/stock/stocktest"
)

const saleID = "sale-1"

// ledger is one in memory.
type ledger struct {
	unknown  bool
	rows     []stock.Purchase
	preloads int64
	totals   int    // calls
	err      error  // of every call
	before   func() // called before each read
}

func (l *ledger) read() error {
	if l.before != nil {
		l.before()
	}
	return l.err
}

func (l *ledger) Totals(context.Context, string) (t stock.LedgerTotals, err error) {
	l.totals++
	if err := l.read(); err != nil {
		return t, err
	}
	if l.unknown {
		return t, stock.ErrSaleNotFound
	}
	t.Preloads = l.preloads
	for _, p := range l.rows {
		t.Rows++
		switch p.Status {
		case stock.StatusPersisted:
			t.Persisted += p.Quantity
		case stock.StatusRejected:
			t.Rejected += p.Quantity
		}
	}
	return t, nil
}

func (l *ledger) EachPurchase(_ context.Context, _ string, fn func(stock.Purchase) error) error {
	if err := l.read(); err != nil {
		return err
	}
	for _, p := range l.rows {
		if err := fn(p); err != nil {
			return err
		}
	}
	return nil
}

// settle copies what the counter has accepted, up to n purchases in all.
func (l *ledger) settle(t *testing.T, m *stocktest.Memory, n int) {
	t.Helper()
	have := map[string]bool{}
	for _, p := range l.rows {
		have[p.PurchaseID] = true
	}
	err := m.EachPurchase(t.Context(), saleID, func(p stock.Purchase) error {
		if !have[p.PurchaseID] && len(l.rows) < n {
			p.Status = stock.StatusPersisted
			l.rows = append(l.rows, p)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func counter(t *testing.T) *stocktest.Memory {
	t.Helper()
	m := &stocktest.Memory{}
	if err := m.Preload(t.Context(), stock.Sale{ID: saleID, ItemID: "item", Stock: 10, PerUserLimit: 5, Variant: "atomic"}); err != nil {
		t.Fatal(err)
	}
	return m
}

func buy(t *testing.T, m *stocktest.Memory, user string, quantity int64) {
	t.Helper()
	results, err := m.Deduct(t.Context(), 0, []stock.Deduction{{
		PurchaseID: stock.PurchaseID(saleID, user, "key"), SaleID: saleID, ItemID: "item", UserID: user, Quantity: quantity, At: time.Now(),
	}})
	if err != nil || results[0].Err != nil {
		t.Fatal(err, results)
	}
}

func run(t *testing.T, m *stocktest.Memory, l *ledger, o audit.Options) stock.Audit {
	t.Helper()
	a, err := audit.New(m, m, l).Audit(t.Context(), saleID, o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestSums(t *testing.T) {
	m, l := counter(t), &ledger{}
	buy(t, m, "ann", 2)
	buy(t, m, "bob", 3)
	l.settle(t, m, 2)
	buy(t, m, "eve", 1)
	want := stock.Audit{
		SaleID: saleID, Variant: "atomic", Initial: 10, Remaining: 4, Accepted: 6, Persisted: 5, InFlight: 1,
	}
	if got := run(t, m, l, audit.Options{}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// Somebody buys just before the ledger is read, and is settled at once: a
// counter that was read before that would make a duplicate of it.
func TestPurchaseBetweenTheReads(t *testing.T) {
	for _, deep := range []bool{false, true} {
		m, l := counter(t), &ledger{}
		buyers := 0
		l.before = func() {
			buyers++
			buy(t, m, fmt.Sprint("user-", buyers), 1)
			l.settle(t, m, buyers)
		}
		got := run(t, m, l, audit.Options{Deep: deep})
		if got.Duplicates != 0 || deep && got.Deep.UnknownToRedis.Count != 0 {
			t.Errorf("deep %v: %+v, deep %+v", deep, got, got.Deep)
		}
	}
}

// The purchase comes while the purchases are being compared: what is missing
// then is explained by not being settled.
func TestPurchaseDuringTheComparison(t *testing.T) {
	m, l := counter(t), &ledger{}
	buy(t, m, "ann", 1)
	l.settle(t, m, 1)
	reads := 0
	l.before = func() {
		if reads++; reads == 3 { // totals, totals, then the purchases
			buy(t, m, "late", 1)
		}
	}
	got := run(t, m, l, audit.Options{Deep: true})
	if got.Settled || got.InFlight != 1 || got.Deep == nil || got.Deep.MissingInLedger.Count != 1 {
		t.Errorf("%+v, deep %+v", got, got.Deep)
	}
}

// In the sums a loss and a duplicate cancel out.
func TestDeepFindsWhatSumsHide(t *testing.T) {
	for name, spoil := range map[string]func(*ledger){
		"lost and invented": func(l *ledger) { l.rows[0].PurchaseID = stock.PurchaseID(saleID, "nobody", "key") },
		"other user":        func(l *ledger) { l.rows[0].UserID = "eve" },
		"quantities":        func(l *ledger) { l.rows[0].Quantity++; l.rows[1].Quantity-- },
	} {
		t.Run(name, func(t *testing.T) {
			m, l := counter(t), &ledger{}
			buy(t, m, "ann", 2)
			buy(t, m, "bob", 2)
			l.settle(t, m, 2)
			if got := run(t, m, l, audit.Options{Deep: true}); !got.Exact() || got.Deep.Compared != 2 {
				t.Fatalf("before: %+v, deep %+v", got, got.Deep)
			}
			spoil(l)
			if got := run(t, m, l, audit.Options{}); !got.Exact() {
				t.Fatalf("the sums see it already: %+v", got)
			}
			if got := run(t, m, l, audit.Options{Deep: true, Wait: time.Hour}); got.Exact() || got.Deep.Same() {
				t.Errorf("not found: %+v, deep %+v", got, got.Deep)
			}
		})
	}
}

func TestWaitsUntilSettled(t *testing.T) {
	for _, deep := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			m, l := counter(t), &ledger{}
			buy(t, m, "ann", 1)
			buy(t, m, "bob", 1)
			began := time.Now()
			l.before = func() {
				switch since := time.Since(began); {
				case since > 5*time.Second:
					l.settle(t, m, 2)
				case since > 2*time.Second:
					l.settle(t, m, 1)
				case since > time.Second:
					l.err = nil
				default:
					l.err = fmt.Errorf("ledger: %w", stock.ErrUnavailable)
				}
			}
			got := run(t, m, l, audit.Options{Wait: time.Minute, Deep: deep})
			if !got.Exact() || (got.Deep != nil) != deep || time.Since(began) > 6*time.Second {
				t.Errorf("deep %v: %+v after %v", deep, got, time.Since(began))
			}
		})
	}
}

func TestWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, l := counter(t), &ledger{}
		buy(t, m, "ann", 1)
		began := time.Now()
		got := run(t, m, l, audit.Options{Wait: 10 * time.Second, Deep: true})
		if took := time.Since(began); took != 10*time.Second || got.InFlight != 1 || got.Settled {
			t.Errorf("%+v after %v", got, took)
		}
		if got.Deep == nil || got.Deep.MissingInLedger.Count != 1 {
			t.Errorf("the last audit is not deep: %+v", got.Deep)
		}
		if l.totals > 40 {
			t.Errorf("%d looks in ten seconds", l.totals)
		}
	})
}

func TestErrors(t *testing.T) {
	broken := errors.New("broken")
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for name, c := range map[string]struct {
		ctx     context.Context
		ledger  ledger
		counter func(*testing.T) *stocktest.Memory
		wait    time.Duration
		want    error
	}{
		"nowhere":                   {ledger: ledger{unknown: true}, counter: func(*testing.T) *stocktest.Memory { return &stocktest.Memory{} }, wait: time.Hour, want: stock.ErrSaleNotFound},
		"in the ledger only":        {counter: func(*testing.T) *stocktest.Memory { return &stocktest.Memory{} }, want: stock.ErrUnavailable},
		"ledger away":               {ledger: ledger{err: stock.ErrUnavailable}, counter: counter, want: stock.ErrUnavailable},
		"ledger away for too long":  {ledger: ledger{err: stock.ErrUnavailable}, counter: counter, wait: 30 * time.Millisecond, want: stock.ErrUnavailable},
		"another error":             {ledger: ledger{err: broken}, counter: counter, wait: time.Hour, want: broken},
		"caller gone while waiting": {ctx: ended, ledger: ledger{err: stock.ErrUnavailable}, counter: counter, wait: time.Hour, want: context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			if c.ctx == nil {
				c.ctx = t.Context()
			}
			m := c.counter(t)
			_, err := audit.New(m, m, &c.ledger).Audit(c.ctx, saleID, audit.Options{Wait: c.wait})
			if !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
			if c.want == stock.ErrUnavailable && errors.Is(err, stock.ErrSaleNotFound) {
				t.Errorf("%v would be answered as not found", err)
			}
		})
	}
}

func TestSaysThatRedisHasLostTheSale(t *testing.T) {
	empty, l := &stocktest.Memory{}, &ledger{preloads: 1, rows: []stock.Purchase{{Quantity: 3, Status: stock.StatusPersisted}}}
	_, err := audit.New(empty, empty, l).Audit(t.Context(), saleID, audit.Options{})
	if !errors.Is(err, stock.ErrUnavailable) || !strings.Contains(err.Error(), "Redis has lost it") || !strings.Contains(err.Error(), "3 units") {
		t.Errorf("never loaded again: %v", err)
	}
	m, l := counter(t), &ledger{preloads: 2}
	if got := run(t, m, l, audit.Options{Deep: true}); !got.Settled || !got.RedisLost || got.Exact() {
		t.Errorf("loaded again: %+v", got)
	}
}

// The ledger hasn't got the sale, the counter has: nothing is in the ledger.
func TestSaleMissingInTheLedger(t *testing.T) {
	m := counter(t)
	buy(t, m, "ann", 4)
	got := run(t, m, &ledger{unknown: true}, audit.Options{})
	if got.InFlight != 4 || got.Persisted != 0 {
		t.Errorf("%+v", got)
	}
}
