package stock

import (
	"fmt"
	"slices"
	"testing"
)

func TestComparison(t *testing.T) {
	one := Purchase{PurchaseID: "s.1", SaleID: "s", UserID: "ann", Quantity: 1, PriceCents: 5, Fence: 9, Status: StatusPending}
	two := one
	two.PurchaseID = "s.2"
	change := func(f func(*Purchase)) Purchase {
		p := one
		f(&p)
		return p
	}
	for _, test := range []struct {
		name                        string
		ledger, counter             []Purchase
		missing, unknown, differing []string
	}{
		{"nothing", nil, nil, nil, nil, nil},
		{"the same, in another state", []Purchase{change(func(p *Purchase) { p.Status = StatusPersisted })}, []Purchase{one}, nil, nil, nil},
		{"scanned twice", []Purchase{one, two}, []Purchase{two, one, two}, nil, nil, nil},
		{"missing in the ledger", []Purchase{one}, []Purchase{one, two, two}, []string{"s.2"}, nil, nil},
		{"ledger empty", nil, []Purchase{one}, []string{"s.1"}, nil, nil},
		{"unknown to Redis", []Purchase{one, two}, []Purchase{one}, nil, []string{"s.2"}, nil},
		{"one lost and one made up", []Purchase{two}, []Purchase{one}, []string{"s.1"}, []string{"s.2"}, nil},
		{"another user", []Purchase{change(func(p *Purchase) { p.UserID = "Ann" })}, []Purchase{one}, nil, nil, []string{"s.1"}},
		{"another quantity", []Purchase{change(func(p *Purchase) { p.Quantity = 2 })}, []Purchase{one}, nil, nil, []string{"s.1"}},
		{"another price", []Purchase{change(func(p *Purchase) { p.PriceCents = 6 })}, []Purchase{one}, nil, nil, []string{"s.1"}},
		{"another fence", []Purchase{change(func(p *Purchase) { p.Fence = 8 })}, []Purchase{one}, nil, nil, []string{"s.1"}},
		{"another sale", []Purchase{change(func(p *Purchase) { p.SaleID = "r" })}, []Purchase{one}, nil, nil, []string{"s.1"}},
		{"twice in the ledger", []Purchase{one, one}, []Purchase{one}, nil, nil, []string{"s.1"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var comparer Comparer
			for _, p := range test.ledger {
				comparer.Ledger(p)
			}
			for _, p := range test.counter {
				comparer.Counter(p)
			}
			got := comparer.Comparison()
			for _, c := range []struct {
				name string
				got  Difference
				want []string
			}{
				{"missing in ledger", got.MissingInLedger, test.missing},
				{"unknown to Redis", got.UnknownToRedis, test.unknown},
				{"differing", got.Differing, test.differing},
			} {
				if !slices.Equal(c.got.Sample, c.want) || c.got.Count != int64(len(c.want)) {
					t.Errorf("%s is %+v, want %v", c.name, c.got, c.want)
				}
			}
			same := len(test.missing)+len(test.unknown)+len(test.differing) == 0
			audit := Audit{Settled: true, Deep: &got}
			if got.Same() != same || audit.Exact() != same {
				t.Errorf("Same, Exact = %v, %v, want %v", got.Same(), audit.Exact(), same)
			}
		})
	}
}

func TestComparisonNamesOnlyTheFirst(t *testing.T) {
	var comparer Comparer
	for n := range 25 {
		comparer.Counter(Purchase{PurchaseID: fmt.Sprintf("s.%02d", 24-n)})
	}
	got := comparer.Comparison().MissingInLedger
	if got.Count != 25 || len(got.Sample) != maxSample || got.Sample[0] != "s.00" || got.Sample[9] != "s.09" {
		t.Errorf("difference is %+v", got)
	}
}
