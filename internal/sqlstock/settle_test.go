package sqlstock_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"flashsale/internal/sqlstock"
	"flashsale/internal/stock"
)

// events are purchases of a sale, from..to-1.
func events(saleID string, from, to int) []stock.Event {
	made := make([]stock.Event, 0, to-from)
	for n := from; n < to; n++ {
		made = append(made, event(saleID, n))
	}
	return made
}

// settled settles a batch and counts its verdicts.
func settled(t *testing.T, db *sqlstock.DB, batch []stock.Event) map[stock.Verdict]int {
	t.Helper()
	verdicts, err := db.Settle(t.Context(), batch)
	if err != nil {
		t.Fatal(err)
	}
	count := map[stock.Verdict]int{}
	for _, v := range verdicts {
		count[v]++
	}
	return count
}

// A batch is taken for new. When it turns out that it isn't, after rows of it
// have been inserted, the answers are those of a batch that was looked for.
func TestBatchThatIsNotAsNewAsItSeems(t *testing.T) {
	const units, batch = 1000, 350 // three statements and a half
	eachDatabase(t, func(t *testing.T, dsn func(testing.TB) string) {
		db := migrated(t, dsn(t), sqlstock.Options{Attempts: 1})
		for name, spoil := range map[string]struct {
			before []stock.Event
			change func([]stock.Event)
			want   map[stock.Verdict]int
			totals stock.LedgerTotals
		}{
			"its end is known": {
				before: events("known", 340, 345),
				want:   map[stock.Verdict]int{stock.VerdictPersisted: batch - 5, stock.VerdictKnown: 5},
				totals: stock.LedgerTotals{Persisted: batch, Rows: batch},
			},
			"the end of a statement is known": {
				before: events("statement", 299, 300),
				want:   map[stock.Verdict]int{stock.VerdictPersisted: batch - 1, stock.VerdictKnown: 1},
				totals: stock.LedgerTotals{Persisted: batch, Rows: batch},
			},
			"a buyer has bought": {
				before: events("buyer", 1000, 1001),
				change: func(batch []stock.Event) { batch[222].UserID = "user1000" },
				want:   map[stock.Verdict]int{stock.VerdictPersisted: batch - 1, stock.VerdictRejected: 1},
				totals: stock.LedgerTotals{Persisted: batch, Rejected: 1, Rows: batch + 1},
			},
			"too little is left": {
				before: events("left", 1000, 1000+units-10),
				want:   map[stock.Verdict]int{stock.VerdictPersisted: 10, stock.VerdictRejected: batch - 10},
				totals: stock.LedgerTotals{Persisted: units, Rejected: batch - 10, Rows: units + batch - 10},
			},
		} {
			t.Run(name, func(t *testing.T) {
				sale := spoil.before[0].SaleID
				insertSale(t, db, sale, units)
				settled(t, db, spoil.before)
				batch := events(sale, 0, batch)
				if spoil.change != nil {
					spoil.change(batch)
				}
				for range 2 { // and all of it known
					if got := settled(t, db, batch); fmt.Sprint(got) != fmt.Sprint(spoil.want) {
						t.Errorf("verdicts %v, want %v", got, spoil.want)
					}
					spoil.want = map[stock.Verdict]int{stock.VerdictKnown: len(batch)}
				}
				totals, err := db.Totals(t.Context(), sale)
				if err != nil || totals != spoil.totals {
					t.Errorf("totals %+v, %v, want %+v", totals, err, spoil.totals)
				}
				record, err := db.Sale(t.Context(), sale)
				if err != nil || record.Remaining != units-totals.Persisted {
					t.Errorf("%d remaining, %v, want %d", record.Remaining, err, units-totals.Persisted)
				}
			})
		}
	})
}

// Several syncers have the same events, in batches of many statements that are
// cut differently. None needs a second attempt.
func TestSyncersWithTheSameLargeBatches(t *testing.T) {
	const syncers, all, units = 4, 1500, 1200
	eachDatabase(t, func(t *testing.T, dsn func(testing.TB) string) {
		db := migrated(t, dsn(t), sqlstock.Options{Attempts: 1})
		insertSale(t, db, "s", units)
		batch := events("s", 0, all)
		sums := make([]map[stock.Verdict]int, syncers)
		var wg sync.WaitGroup
		for n := range syncers {
			sums[n] = map[stock.Verdict]int{}
			wg.Go(func() {
				for part := range slices.Chunk(batch, 250+70*n) {
					verdicts, err := db.Settle(t.Context(), part)
					if err != nil {
						t.Error(err)
						return
					}
					for _, v := range verdicts {
						sums[n][v]++
					}
				}
			})
		}
		wg.Wait()
		sum := map[stock.Verdict]int{}
		for _, verdicts := range sums {
			for v, n := range verdicts {
				sum[v] += n
			}
		}
		want := map[stock.Verdict]int{stock.VerdictPersisted: units, stock.VerdictRejected: all - units, stock.VerdictKnown: (syncers - 1) * all}
		if fmt.Sprint(sum) != fmt.Sprint(want) {
			t.Errorf("verdicts %v, want %v", sum, want)
		}
		for n, e := range batch { // in order: the last ones got nothing
			p, err := db.Purchase(t.Context(), e.PurchaseID)
			if rejected := n >= units; err != nil || (p.Status == stock.StatusRejected) != rejected {
				t.Fatalf("purchase %d is %s, %v", n, p.Status, err)
			}
		}
	})
}

// What is rejected collides with nothing, so its reason has to be looked for:
// who has one gets no second one, whether or not there is any.
func TestReasonOfARejectionWhenNothingIsLeft(t *testing.T) {
	eachDatabase(t, func(t *testing.T, dsn func(testing.TB) string) {
		db := migrated(t, dsn(t), sqlstock.Options{})
		insertSale(t, db, "s", 1)
		settled(t, db, events("s", 1, 2))
		again, late := event("s", 2), event("s", 3)
		again.UserID = "user1"
		settled(t, db, []stock.Event{again, late})
		for _, want := range []struct {
			event  stock.Event
			reason string
		}{{again, stock.ReasonAlreadyBought}, {late, stock.ReasonSoldOut}} {
			if p, err := db.Purchase(t.Context(), want.event.PurchaseID); err != nil || p.Reason != want.reason {
				t.Errorf("%s of %s: reason %q, %v, want %q", p.PurchaseID, p.UserID, p.Reason, err, want.reason)
			}
		}
	})
}
