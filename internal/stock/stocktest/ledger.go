package stocktest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"flashsale/internal/stock"
)

// LedgerSuite is what every stock.Ledger does. open returns an empty one that
// is ready for use, and closes it when t ends.
func LedgerSuite(t *testing.T, open func(t *testing.T) stock.Ledger) {
	for _, c := range []struct {
		name string
		test func(*testing.T, stock.Ledger)
	}{
		{"a sale comes back as it was inserted", ledgerSaleRoundTrip},
		{"inserting a sale again changes nothing", ledgerInsertAgain},
		{"a sale with other terms is refused", ledgerOtherTerms},
		{"sales are listed in pages", ledgerSalesPaged},
		{"closing keeps the first time", ledgerClose},
		{"preloads are noted", ledgerPreloads},
		{"what is not there is not found", ledgerNotFound},
		{"a purchase comes back as it was settled", ledgerPurchaseRoundTrip},
		{"bob and Bob are two buyers", ledgerCase},
		{"what was oversold is rejected and stays so", ledgerOversold},
		{"a buyer's second purchase is rejected", ledgerAlreadyBought},
		{"redelivery changes nothing", ledgerRedelivery},
		{"a batch of several sales", ledgerMixedSales},
		{"an unknown sale stores nothing", ledgerUnknownSale},
		{"an event that can't be stored settles nothing", ledgerUnstorable},
		{"the same events settled at once", ledgerConcurrent},
		{"overlapping batches of crossing sales at once", ledgerCrossing},
		{"ten thousand rows", ledgerManyRows},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
}

// ledgerTime has microseconds and a zone, neither of which may get lost.
var ledgerTime = time.Date(2026, 11, 11, 20, 0, 0, 123456000, time.FixedZone("", 8*60*60))

func ledgerSale(id string, units int64) stock.Sale {
	return stock.Sale{
		ID: id, ItemID: id, Title: "T-shirt", PriceCents: 1999, Stock: units, PerUserLimit: 2,
		Variant: "watchdog", Fencing: true, StartsAt: ledgerTime,
	}
}

func ledgerInsert(t *testing.T, l stock.Ledger, sales ...stock.Sale) {
	t.Helper()
	for _, sale := range sales {
		if err := l.InsertSale(t.Context(), sale); err != nil {
			t.Fatal(err)
		}
	}
}

// ledgerEvent is a user's purchase n in a sale.
func ledgerEvent(saleID string, n int, user string, quantity int64) stock.Event {
	return stock.Event{
		Version: stock.EventVersion, Type: stock.Deducted,
		PurchaseID: stock.PurchaseID(saleID, user, fmt.Sprint(n)), SaleID: saleID, ItemID: saleID, UserID: user,
		Quantity: quantity, PriceCents: 1999, Fence: 1_790_000_000_000_000 + uint64(n), Variant: "watchdog",
		At: ledgerTime.Add(time.Duration(n) * time.Microsecond),
	}
}

func ledgerSettle(t *testing.T, l stock.Ledger, events []stock.Event, want ...stock.Verdict) {
	t.Helper()
	got, err := l.Settle(t.Context(), events)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("verdicts %v, want %v", got, want)
	}
}

func ledgerTotals(t *testing.T, l stock.Ledger, saleID string, want stock.LedgerTotals, remaining int64) {
	t.Helper()
	got, err := l.Totals(t.Context(), saleID)
	if err != nil {
		t.Fatal(err)
	}
	sale, err := l.Sale(t.Context(), saleID)
	if err != nil {
		t.Fatal(err)
	}
	if got != want || sale.Remaining != remaining {
		t.Errorf("totals of %s %+v and %d remaining, want %+v and %d", saleID, got, sale.Remaining, want, remaining)
	}
}

func ledgerSaleRoundTrip(t *testing.T, l stock.Ledger) {
	full := ledgerSale("full", 100)
	full.Title = `"Été" 50 % off — 限时抢购 🔥 \ '`
	full.EndsAt = ledgerTime.Add(time.Hour)
	full.Work = stock.WorkRange{Min: 50 * time.Millisecond, Max: 200*time.Millisecond + 5*time.Microsecond}
	bare := stock.Sale{ID: "bare", ItemID: "item", Title: "x", Stock: 1, PerUserLimit: 1, Variant: "none"}
	ledgerInsert(t, l, full, bare)
	for _, sale := range []stock.Sale{full, bare} {
		got, err := l.Sale(t.Context(), sale.ID)
		if err != nil {
			t.Fatal(err)
		}
		if !got.SameTerms(sale) || got.Remaining != sale.Stock || !got.ClosedAt.IsZero() {
			t.Errorf("got %+v, want %+v", got, sale)
		}
		for _, at := range []time.Time{got.StartsAt, got.EndsAt} {
			if at.Location() != time.UTC {
				t.Errorf("%s: time %v is not in UTC", sale.ID, at)
			}
		}
	}
}

func ledgerInsertAgain(t *testing.T, l stock.Ledger) {
	sale := ledgerSale("s", 5)
	sale.StartsAt = sale.StartsAt.Add(999 * time.Nanosecond) // finer than what is kept
	ledgerInsert(t, l, sale)
	ledgerSettle(t, l, []stock.Event{ledgerEvent("s", 1, "ann", 2)}, stock.VerdictPersisted)
	ledgerInsert(t, l, sale)
	ledgerTotals(t, l, "s", stock.LedgerTotals{Persisted: 2, Rows: 1}, 3)
}

func ledgerOtherTerms(t *testing.T, l stock.Ledger) {
	ledgerInsert(t, l, ledgerSale("s", 5))
	for field, change := range map[string]func(*stock.Sale){
		"item":    func(s *stock.Sale) { s.ItemID = "other" },
		"title":   func(s *stock.Sale) { s.Title = "t-shirt" },
		"price":   func(s *stock.Sale) { s.PriceCents++ },
		"stock":   func(s *stock.Sale) { s.Stock++ },
		"limit":   func(s *stock.Sale) { s.PerUserLimit++ },
		"variant": func(s *stock.Sale) { s.Variant = "none" },
		"fencing": func(s *stock.Sale) { s.Fencing = false },
		"start":   func(s *stock.Sale) { s.StartsAt = s.StartsAt.Add(time.Microsecond) },
		"end":     func(s *stock.Sale) { s.EndsAt = ledgerTime },
		"work":    func(s *stock.Sale) { s.Work.Max = time.Millisecond },
	} {
		other := ledgerSale("s", 5)
		change(&other)
		if err := l.InsertSale(t.Context(), other); !errors.Is(err, stock.ErrSaleExists) {
			t.Errorf("other %s: %v, want ErrSaleExists", field, err)
		}
	}
	ledgerInsert(t, l, ledgerSale("s", 5))
}

func ledgerSalesPaged(t *testing.T, l stock.Ledger) {
	ids := []string{"0", "a", "a-1", "a0", "b", "c10", "c9"}
	for _, i := range []int{3, 6, 0, 5, 1, 4, 2} {
		ledgerInsert(t, l, ledgerSale(ids[i], 1))
	}
	var got []string
	for after := ""; ; {
		page, err := l.Sales(t.Context(), after, 3)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) > 3 {
			t.Fatalf("page of %d sales, at most 3 were asked for", len(page))
		}
		for _, sale := range page {
			got = append(got, sale.ID)
		}
		if len(page) < 3 {
			break
		}
		after = got[len(got)-1]
	}
	if !slices.Equal(got, ids) {
		t.Errorf("sales %v, want %v", got, ids)
	}
}

func ledgerClose(t *testing.T, l stock.Ledger) {
	ledgerInsert(t, l, ledgerSale("s", 1), ledgerSale("other", 1))
	for _, at := range []time.Time{ledgerTime, ledgerTime.Add(time.Hour)} {
		if err := l.CloseSale(t.Context(), "s", at); err != nil {
			t.Fatal(err)
		}
	}
	closed, err := l.Sale(t.Context(), "s")
	if err != nil || !closed.ClosedAt.Equal(ledgerTime) {
		t.Errorf("closed at %v (%v), want %v", closed.ClosedAt, err, ledgerTime)
	}
	open, err := l.Sale(t.Context(), "other")
	if err != nil || !open.ClosedAt.IsZero() {
		t.Errorf("the other sale was closed at %v (%v)", open.ClosedAt, err)
	}
	// Units that were sold before are the buyers', whenever they arrive.
	ledgerSettle(t, l, []stock.Event{ledgerEvent("s", 1, "ann", 1)}, stock.VerdictPersisted)
}

func ledgerPreloads(t *testing.T, l stock.Ledger) {
	ledgerInsert(t, l, ledgerSale("s", 5), ledgerSale("other", 1))
	note := func(saleID string, again bool, want int64) {
		t.Helper()
		if err := l.NotePreload(t.Context(), saleID, again); err != nil {
			t.Fatal(err)
		}
		ledgerTotals(t, l, saleID, stock.LedgerTotals{Preloads: want}, map[string]int64{"s": 5, "other": 1}[saleID])
	}
	ledgerTotals(t, l, "s", stock.LedgerTotals{}, 5)
	note("s", false, 1)
	note("s", false, 1)
	note("other", true, 2) // it was there, though nobody noted that
	note("s", true, 2)
	note("s", false, 2)
	ledgerSettle(t, l, []stock.Event{ledgerEvent("s", 1, "ann", 2)}, stock.VerdictPersisted)
	ledgerTotals(t, l, "s", stock.LedgerTotals{Preloads: 2, Persisted: 2, Rows: 1}, 3)
}

func ledgerNotFound(t *testing.T, l stock.Ledger) {
	ledgerInsert(t, l, ledgerSale("sale", 1))
	ctx := t.Context()
	for _, id := range []string{"", "nope", "SALE", "sale ", "s%", "_ale"} {
		_, errSale := l.Sale(ctx, id)
		_, errTotals := l.Totals(ctx, id)
		for what, err := range map[string]error{
			"Sale": errSale, "CloseSale": l.CloseSale(ctx, id, ledgerTime), "Totals": errTotals,
		} {
			// CHAR comparison in SQL ignores spaces at the end; no ID has one.
			if !errors.Is(err, stock.ErrSaleNotFound) && id != "sale " {
				t.Errorf("%s(%q): %v, want ErrSaleNotFound", what, id, err)
			}
		}
	}
	if _, err := l.Purchase(ctx, "sale.1"); !errors.Is(err, stock.ErrPurchaseNotFound) {
		t.Errorf("Purchase: %v, want ErrPurchaseNotFound", err)
	}
	if got, err := l.PurchasesOf(ctx, "sale", "ann"); err != nil || len(got) != 0 {
		t.Errorf("PurchasesOf: %v, %v, want none", got, err)
	}
	if err := l.EachPurchase(ctx, "sale", func(p stock.Purchase) error { return errors.New(p.PurchaseID) }); err != nil {
		t.Errorf("EachPurchase: %v, want none", err)
	}
	ledgerTotals(t, l, "sale", stock.LedgerTotals{}, 1)
}

func ledgerPurchaseRoundTrip(t *testing.T, l stock.Ledger) {
	ledgerInsert(t, l, ledgerSale("s", 3))
	e := ledgerEvent("s", 1, "Ann.Lee_2@x-y", 3)
	before := time.Now().Add(-time.Minute)
	ledgerSettle(t, l, []stock.Event{e}, stock.VerdictPersisted)

	got, err := l.Purchase(t.Context(), e.PurchaseID)
	if err != nil {
		t.Fatal(err)
	}
	if got.PersistedAt.Before(before) || got.PersistedAt.Location() != time.UTC {
		t.Errorf("persisted at %v", got.PersistedAt)
	}
	want := stock.Purchase{
		PurchaseID: e.PurchaseID, SaleID: "s", UserID: e.UserID, Quantity: 3, PriceCents: 1999, Fence: e.Fence,
		Status: stock.StatusPersisted, CreatedAt: e.At.UTC(), PersistedAt: got.PersistedAt,
	}
	if !got.CreatedAt.Equal(want.CreatedAt) || got.CreatedAt.Location() != time.UTC {
		t.Errorf("created at %v, want %v", got.CreatedAt, want.CreatedAt)
	}
	got.CreatedAt = want.CreatedAt
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func ledgerCase(t *testing.T, l stock.Ledger) {
	ledgerInsert(t, l, ledgerSale("s", 3))
	bob, Bob := ledgerEvent("s", 1, "bob", 1), ledgerEvent("s", 2, "Bob", 1)
	ledgerSettle(t, l, []stock.Event{bob}, stock.VerdictPersisted)
	ledgerSettle(t, l, []stock.Event{Bob}, stock.VerdictPersisted)
	ledgerTotals(t, l, "s", stock.LedgerTotals{Persisted: 2, Rows: 2}, 1)
	for user, id := range map[string]string{"bob": bob.PurchaseID, "Bob": Bob.PurchaseID} {
		got, err := l.PurchasesOf(t.Context(), "s", user)
		if err != nil || len(got) != 1 || got[0].PurchaseID != id {
			t.Errorf("purchases of %s: %v, %v", user, got, err)
		}
	}
}

func ledgerOversold(t *testing.T, l stock.Ledger) {
	ledgerInsert(t, l, ledgerSale("s", 3))
	events := []stock.Event{ledgerEvent("s", 3, "ann", 2), ledgerEvent("s", 2, "bob", 2), ledgerEvent("s", 1, "eve", 1)}
	ledgerSettle(t, l, events, stock.VerdictPersisted, stock.VerdictRejected, stock.VerdictPersisted)
	ledgerSettle(t, l, events[1:2], stock.VerdictKnown)
	ledgerTotals(t, l, "s", stock.LedgerTotals{Persisted: 3, Rejected: 2, Rows: 3}, 0)

	got, err := l.Purchase(t.Context(), events[1].PurchaseID)
	if err != nil || got.Status != stock.StatusRejected || got.Reason != stock.ReasonSoldOut || got.Quantity != 2 {
		t.Errorf("the rejected purchase is %+v, %v", got, err)
	}
}

func ledgerAlreadyBought(t *testing.T, l stock.Ledger) {
	ledgerInsert(t, l, ledgerSale("s", 5), ledgerSale("other", 5))
	events := []stock.Event{ledgerEvent("s", 1, "ann", 1), ledgerEvent("s", 2, "ann", 1), ledgerEvent("s", 3, "ann", 1)}
	ledgerSettle(t, l, events[:2], stock.VerdictPersisted, stock.VerdictRejected)
	ledgerSettle(t, l, events[2:], stock.VerdictRejected) // two rejected ones don't collide
	ledgerSettle(t, l, []stock.Event{ledgerEvent("other", 1, "ann", 1)}, stock.VerdictPersisted)
	ledgerTotals(t, l, "s", stock.LedgerTotals{Persisted: 1, Rejected: 2, Rows: 3}, 4)

	mine, err := l.PurchasesOf(t.Context(), "s", "ann")
	if err != nil || len(mine) != 3 {
		t.Fatalf("purchases %v, %v", mine, err)
	}
	for i, reason := range []string{"", stock.ReasonAlreadyBought, stock.ReasonAlreadyBought} {
		if mine[i].Reason != reason {
			t.Errorf("purchase %d: reason %q, want %q", i, mine[i].Reason, reason)
		}
	}
}

func ledgerRedelivery(t *testing.T, l stock.Ledger) {
	ledgerInsert(t, l, ledgerSale("s", 2))
	a, b, c := ledgerEvent("s", 1, "ann", 1), ledgerEvent("s", 2, "bob", 1), ledgerEvent("s", 3, "eve", 1)
	ledgerSettle(t, l, []stock.Event{a, a, b, a}, stock.VerdictPersisted, stock.VerdictKnown, stock.VerdictPersisted, stock.VerdictKnown)
	ledgerSettle(t, l, []stock.Event{b, c, b, c}, stock.VerdictKnown, stock.VerdictRejected, stock.VerdictKnown, stock.VerdictKnown)
	ledgerSettle(t, l, []stock.Event{a, b, c}, stock.VerdictKnown, stock.VerdictKnown, stock.VerdictKnown)
	ledgerTotals(t, l, "s", stock.LedgerTotals{Persisted: 2, Rejected: 1, Rows: 3}, 0)
}

func ledgerMixedSales(t *testing.T, l stock.Ledger) {
	ledgerInsert(t, l, ledgerSale("a", 1), ledgerSale("b", 10), ledgerSale("c", 10))
	ledgerSettle(t, l, []stock.Event{
		ledgerEvent("b", 1, "ann", 2), ledgerEvent("a", 1, "ann", 1), ledgerEvent("nope", 1, "ann", 1),
		ledgerEvent("a", 2, "bob", 1), ledgerEvent("b", 2, "bob", 3), ledgerEvent("b", 1, "ann", 2),
	},
		stock.VerdictPersisted, stock.VerdictPersisted, stock.VerdictUnknownSale,
		stock.VerdictRejected, stock.VerdictPersisted, stock.VerdictKnown)
	ledgerTotals(t, l, "a", stock.LedgerTotals{Persisted: 1, Rejected: 1, Rows: 2}, 0)
	ledgerTotals(t, l, "b", stock.LedgerTotals{Persisted: 5, Rows: 2}, 5)
	ledgerTotals(t, l, "c", stock.LedgerTotals{}, 10)
}

func ledgerUnknownSale(t *testing.T, l stock.Ledger) {
	e := ledgerEvent("late", 1, "ann", 1)
	ledgerSettle(t, l, []stock.Event{e}, stock.VerdictUnknownSale)
	if _, err := l.Purchase(t.Context(), e.PurchaseID); !errors.Is(err, stock.ErrPurchaseNotFound) {
		t.Errorf("a purchase of an unknown sale was stored: %v", err)
	}
	ledgerInsert(t, l, ledgerSale("late", 1))
	ledgerSettle(t, l, []stock.Event{e}, stock.VerdictPersisted)
	ledgerSettle(t, l, nil)
}

func ledgerUnstorable(t *testing.T, l stock.Ledger) {
	ledgerInsert(t, l, ledgerSale("s", 5))
	for field, spoil := range map[string]func(*stock.Event){
		"type":                func(e *stock.Event) { e.Type = "sold" },
		"purchase_id":         func(e *stock.Event) { e.PurchaseID = "s.1" },
		"no purchase_id":      func(e *stock.Event) { e.PurchaseID = "" },
		"another sale's":      func(e *stock.Event) { e.PurchaseID = stock.PurchaseID("t", "bob", "2") },
		"user_id":             func(e *stock.Event) { e.UserID = "Zoë" },
		"user_id that's long": func(e *stock.Event) { e.UserID = strings.Repeat("x", 65) },
		"quantity":            func(e *stock.Event) { e.Quantity = -1 },
		"at":                  func(e *stock.Event) { e.At = time.Time{} },
		"fence":               func(e *stock.Event) { e.Fence = 1 << 63 },
	} {
		bad := ledgerEvent("s", 2, "bob", 1)
		spoil(&bad)
		var invalid *stock.InvalidError
		_, err := l.Settle(t.Context(), []stock.Event{ledgerEvent("s", 1, "ann", 1), bad})
		if !errors.As(err, &invalid) {
			t.Errorf("%s: %v, want an InvalidError", field, err)
		}
	}
	ledgerTotals(t, l, "s", stock.LedgerTotals{}, 5)
}

// After a rebalance two syncers may have the same events.
func ledgerConcurrent(t *testing.T, l stock.Ledger) {
	const syncers, events, units = 6, 60, 40
	ledgerInsert(t, l, ledgerSale("s", units))
	batch := make([]stock.Event, events)
	for i := range batch {
		batch[i] = ledgerEvent("s", i, fmt.Sprint("user", i), 1)
	}
	settled := make([]map[stock.Verdict]int, syncers)
	var wg sync.WaitGroup
	for n := range syncers {
		settled[n] = map[stock.Verdict]int{}
		wg.Go(func() {
			for part := range slices.Chunk(batch, 7+n) {
				verdicts, err := l.Settle(t.Context(), part)
				if err != nil {
					t.Error(err)
					return
				}
				for _, v := range verdicts {
					settled[n][v]++
				}
			}
		})
	}
	wg.Wait()
	sum := map[stock.Verdict]int{}
	for _, verdicts := range settled {
		for v, n := range verdicts {
			sum[v] += n
		}
	}
	want := map[stock.Verdict]int{
		stock.VerdictPersisted: units, stock.VerdictRejected: events - units, stock.VerdictKnown: (syncers - 1) * events,
	}
	if !maps.Equal(sum, want) {
		t.Errorf("verdicts %v, want %v", sum, want)
	}
	ledgerTotals(t, l, "s", stock.LedgerTotals{Persisted: units, Rejected: events - units, Rows: events}, 0)
}

// Batches that name the same sales in opposite order are what deadlocks.
func ledgerCrossing(t *testing.T, l stock.Ledger) {
	const rounds = 25
	ledgerInsert(t, l, ledgerSale("a", 1000), ledgerSale("b", 1000))
	var wg sync.WaitGroup
	for n, order := range [][]string{{"a", "b"}, {"b", "a"}, {"a", "b"}, {"b", "a"}} {
		wg.Go(func() {
			for i := range rounds {
				id := n*rounds + i
				var batch []stock.Event
				for _, sale := range order {
					batch = append(batch, ledgerEvent(sale, id, fmt.Sprint("user", id), 1))
				}
				if _, err := l.Settle(t.Context(), batch); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	for _, sale := range []string{"a", "b"} {
		ledgerTotals(t, l, sale, stock.LedgerTotals{Persisted: 4 * rounds, Rows: 4 * rounds}, 1000-4*rounds)
	}
}

func ledgerManyRows(t *testing.T, l stock.Ledger) {
	const rows = 10_000
	// Sales whose purchases come right before and right after in any index.
	ledgerInsert(t, l, ledgerSale("s", rows-1), ledgerSale("r", 10), ledgerSale("s-1", 10), ledgerSale("s0", 10))
	for _, other := range []string{"r", "s-1", "s0"} {
		ledgerSettle(t, l, []stock.Event{ledgerEvent(other, 1, "ann", 1)}, stock.VerdictPersisted)
	}
	events := make([]stock.Event, rows)
	want := make([]string, rows)
	for i := range events {
		events[i] = ledgerEvent("s", i, fmt.Sprint("user", i), 1)
		want[i] = events[i].PurchaseID
	}
	slices.Sort(want)
	if _, err := l.Settle(t.Context(), events); err != nil {
		t.Fatal(err)
	}
	ledgerTotals(t, l, "s", stock.LedgerTotals{Persisted: rows - 1, Rejected: 1, Rows: rows}, 0)

	n := 0
	err := l.EachPurchase(t.Context(), "s", func(p stock.Purchase) error {
		if n == rows || p.PurchaseID != want[n] {
			return fmt.Errorf("purchase %d is %s", n, p.PurchaseID)
		}
		n++
		if n%1500 == 0 { // fn may use the ledger
			_, err := l.Purchase(t.Context(), p.PurchaseID)
			return err
		}
		return nil
	})
	if err != nil || n != rows {
		t.Errorf("%d purchases, %v, want %d", n, err, rows)
	}

	stop := errors.New("stop")
	n = 0
	err = l.EachPurchase(t.Context(), "s", func(stock.Purchase) error { n++; return stop })
	if !errors.Is(err, stop) || n != 1 {
		t.Errorf("after %d purchases %v, want to stop at the first", n, err)
	}
}
