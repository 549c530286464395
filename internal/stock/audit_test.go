package stock

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestNewAudit(t *testing.T) {
	for _, test := range []struct {
		name                   string
		stock, remaining       int64
		accepted, cancelled    int64
		persisted, rejected, c int64 // c: the ledger's cancelled
		want                   Audit // the sums alone
		exact                  bool
	}{
		{"untouched", 100, 100, 0, 0, 0, 0, 0, Audit{Settled: true}, true},
		{"sold out, settled", 100, 0, 100, 0, 100, 0, 0, Audit{Settled: true}, true},
		{"on its way", 100, 0, 100, 0, 60, 0, 0, Audit{InFlight: 40}, false},
		{"oversold by lost updates", 100, 0, 173, 0, 100, 73, 0, Audit{Settled: true, Oversold: 73, LostUpdates: 73}, false},
		{"lost updates with stock to spare", 1000, 990, 30, 0, 30, 0, 0, Audit{Settled: true, LostUpdates: 20}, false},
		{"gone, sold to nobody", 100, 40, 50, 0, 50, 0, 0, Audit{Settled: true, Undersold: 10}, false},
		{"in the ledger, never accepted", 100, 90, 10, 0, 12, 0, 0, Audit{Settled: true, Duplicates: 2}, false},
		{"given back", 100, 95, 10, 5, 5, 0, 5, Audit{Settled: true}, true},
		{"given back, not in the ledger yet", 100, 95, 10, 5, 10, 0, 0, Audit{}, false},
		{"given back and sold again", 10, 0, 15, 5, 10, 0, 5, Audit{Settled: true}, true},
		{"restored twice", 100, 96, 5, 0, 5, 0, 0, Audit{Settled: true, LostUpdates: 1}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := NewAudit(
				Snapshot{
					Sale:      Sale{ID: "s", Variant: "none", Stock: test.stock},
					Remaining: test.remaining, Accepted: test.accepted, Cancelled: test.cancelled,
				},
				LedgerTotals{Persisted: test.persisted, Rejected: test.rejected, Cancelled: test.c},
			)
			want := test.want
			want.SaleID, want.Variant, want.Initial, want.Remaining = "s", "none", test.stock, test.remaining
			want.Accepted, want.Cancelled = test.accepted, test.cancelled
			want.Persisted, want.Rejected = test.persisted, test.rejected
			if got != want {
				t.Errorf("audit is\n%+v, want\n%+v", got, want)
			}
			if got.Exact() != test.exact {
				t.Errorf("Exact = %v", got.Exact())
			}
		})
	}
}

// A sale that was loaded again adds up like any other, but what it sold before
// Redis was lost isn't in the sums.
func TestAuditOfALostSaleIsNeverExact(t *testing.T) {
	for preloads, lost := range []bool{false, false, true, true} {
		audit := NewAudit(Snapshot{Sale: Sale{Stock: 10}, Remaining: 8, Accepted: 2}, LedgerTotals{Persisted: 2, Preloads: int64(preloads)})
		if audit.RedisLost != lost || audit.Exact() == lost || !audit.Settled {
			t.Errorf("loaded %d times: %+v, exact %v", preloads, audit, audit.Exact())
		}
		if text, err := json.Marshal(audit); err != nil || strings.Contains(string(text), `"redis_lost":true`) != lost {
			t.Errorf("loaded %d times: %s, %v", preloads, text, err)
		}
	}
}

func TestAuditRates(t *testing.T) {
	audit := Audit{Initial: 100, Accepted: 160, Oversold: 60}
	if got := audit.OversellRate(); got != 0.375 {
		t.Errorf("oversell rate is %v, want 0.375", got)
	}
	if got := (Audit{}).OversellRate(); got != 0 {
		t.Errorf("oversell rate of nothing is %v", got)
	}
	for _, test := range []struct{ stock, users, accepted, want int64 }{
		{100, 300, 94, 6}, {100, 300, 100, 0}, {100, 300, 160, 0}, {100, 40, 40, 0}, {100, 40, 39, 1},
	} {
		audit := Audit{Initial: test.stock, Accepted: test.accepted}
		if got := audit.Unsold(test.users); got != test.want {
			t.Errorf("%+v: unsold is %d", test, got)
		}
	}
}

func TestAuditKeysAreAContract(t *testing.T) {
	text, err := json.Marshal(Audit{SaleID: "s", Variant: "v", Initial: 1, Remaining: 2, Accepted: 3, Cancelled: 4,
		Persisted: 5, Rejected: 6, InFlight: 7, Oversold: 8, LostUpdates: 9, Undersold: 10, Duplicates: 11, Settled: true})
	const want = `{"sale_id":"s","variant":"v","initial":1,"remaining":2,"accepted":3,"cancelled":4,` +
		`"persisted":5,"rejected":6,"in_flight":7,"oversold":8,"lost_updates":9,"undersold":10,"duplicates":11,"settled":true}`
	if string(text) != want || err != nil {
		t.Errorf("JSON is\n%s, want\n%s (%v)", text, want, err)
	}
}

// FuzzAudit plays a sale with every fault that there is, and wants the audit to
// find as much of each as was made.
func FuzzAudit(f *testing.F) {
	for seed := range uint64(200) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		random := rand.New(rand.NewPCG(seed, 0))
		initial := 1 + random.Int64N(50)
		counter := Snapshot{Sale: Sale{Stock: initial}, Remaining: initial}
		var ledger LedgerTotals
		var lost, gone, pending int64 // made by this game
		for range random.IntN(100) {
			n := 1 + random.Int64N(3)
			switch random.IntN(6) {
			case 0: // a proper purchase
				if counter.Remaining >= n {
					counter.Remaining -= n
					counter.Accepted += n
					pending += n
				}
			case 1: // one whose update is lost
				counter.Accepted += n
				pending += n
				lost += n
			case 2: // units deducted, the buyer told nothing
				if counter.Remaining >= n {
					counter.Remaining -= n
					gone += n
				}
			case 3: // the ledger catches up
				if pending >= n {
					pending -= n
					ledger.Persisted += n
				}
			case 4: // the ledger rejects
				if pending >= n {
					pending -= n
					ledger.Rejected += n
				}
			case 5: // given back, on both sides
				if ledger.Persisted >= n {
					ledger.Persisted -= n
					ledger.Cancelled += n
					counter.Cancelled += n
					counter.Remaining += n
				}
			}
		}
		audit := NewAudit(counter, ledger)
		if got, want := audit.LostUpdates-audit.Undersold, lost-gone; got != want {
			t.Errorf("lost updates - undersold = %d, want %d: %+v", got, want, audit)
		}
		if audit.LostUpdates > 0 && audit.Undersold > 0 {
			t.Errorf("both lost updates and undersold: %+v", audit)
		}
		if want := max(0, counter.Accepted-counter.Cancelled-initial); audit.Oversold != want {
			t.Errorf("oversold is %d, want %d", audit.Oversold, want)
		}
		if audit.InFlight != pending || audit.Settled != (pending == 0) || audit.Duplicates != 0 {
			t.Errorf("in flight, settled, duplicates are %d, %v, %d; want %d", audit.InFlight, audit.Settled, audit.Duplicates, pending)
		}
		if lost == 0 && audit.Oversold > 0 {
			t.Errorf("oversold without a lost update: %+v", audit)
		}
		// Whatever the ledger counts beyond what was accepted is a duplicate.
		again := ledger
		again.Persisted += pending + 5
		if audit := NewAudit(counter, again); audit.Duplicates != 5 || audit.InFlight != 0 {
			t.Errorf("duplicates are %d, in flight %d; want 5, 0", audit.Duplicates, audit.InFlight)
		}
	})
}
