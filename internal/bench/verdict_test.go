package bench

import (
	"strings"
	"testing"

	"flashsale/internal/stock"
)

func TestFaults(t *testing.T) {
	sound := Row{Variant: "setnx", Model: ModelRace, Users: 300, Stock: 100, Accepted: 100, AuditAccepted: 100, Persisted: 100, Settled: true}
	none := Row{Variant: NoLock, Model: ModelRace, Users: 300, Stock: 100, Accepted: 150, AuditAccepted: 150,
		Persisted: 100, Rejected: 50, Oversold: 50, LostUpdates: 50, Settled: true}
	tests := []struct {
		name string
		row  Row
		with func(*Row)
		want string // in the only fault; empty: none
	}{
		{"sound", sound, func(*Row) {}, ""},
		{"skipped", sound, func(r *Row) { why := "needs redis-server"; *r = Row{Skipped: &why} }, ""},
		{"left over, which is slow and not wrong", sound, func(r *Row) { r.Accepted, r.AuditAccepted, r.Persisted, r.Unsold = 90, 90, 90, 10 }, ""},
		{"oversold", sound, func(r *Row) { r.Oversold = 1 }, "oversold"},
		{"lost update", sound, func(r *Row) { r.LostUpdates = 1 }, "lost"},
		{"undersold", sound, func(r *Row) { r.Undersold = 2 }, "sold to nobody"},
		{"duplicate", sound, func(r *Row) { r.Duplicates = 1 }, "more than once"},
		{"refused by the ledger", sound, func(r *Row) { r.Rejected, r.Persisted = 1, 99 }, "refused"},
		{"one too few persisted", sound, func(r *Row) { r.Persisted = 99 }, "99 persisted"},
		{"not settled", sound, func(r *Row) { r.Settled, r.Persisted = false, 99 }, "did not settle"},
		{"failed", sound, func(r *Row) { r.Failed, r.Failures = 3, []string{"3x 503 unavailable"} }, "503 unavailable"},
		{"answered 201, not counted", sound, func(r *Row) { r.Accepted = 101 }, "101 purchases were answered"},
		{"one lost and one twice, which sums don't show", sound, func(r *Row) {
			r.Deep = &stock.Comparison{Compared: 99, MissingInLedger: stock.Difference{Count: 1, Sample: []string{"s.lost"}}}
		}, "s.lost"},

		{"no lock oversells", none, func(*Row) {}, ""},
		{"no lock, closed: nothing can be oversold", none, func(r *Row) { r.Model, r.Oversold, r.Rejected, r.Persisted = ModelClosed, 0, 0, 150 }, ""},
		{"no lock, but exact", none, func(r *Row) { r.Oversold, r.Rejected, r.Accepted, r.AuditAccepted = 0, 0, 100, 100 }, "did not oversell: 300 users, 100 accepted of 100"},
		{"broken on purpose, exact", sound, func(r *Row) { r.Broken = true }, ""},
		{"broken on purpose, oversold", none, func(r *Row) { r.Variant, r.Broken = "setnx-bare", true }, ""},
		{"broken on purpose, not settled", sound, func(r *Row) { r.Broken, r.Settled = true, false }, "did not settle"},
		{"no lock, not settled", none, func(r *Row) { r.Settled = false }, "did not settle"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			row := test.row
			test.with(&row)
			faults := Faults(row)
			if test.want == "" {
				if len(faults) > 0 {
					t.Errorf("faults %q", faults)
				}
				return
			}
			if len(faults) != 1 || !strings.Contains(faults[0], test.want) {
				t.Errorf("faults %q, want one about %q", faults, test.want)
			}
		})
	}
}
