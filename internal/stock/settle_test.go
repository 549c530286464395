package stock

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

func buy(id, user string, quantity int64) Event {
	return Event{Version: EventVersion, Type: Deducted, PurchaseID: id, SaleID: "s", UserID: user, Quantity: quantity}
}

func set(members ...string) map[string]bool {
	m := map[string]bool{}
	for _, k := range members {
		m[k] = true
	}
	return m
}

func TestSettle(t *testing.T) {
	persisted := Ruling{Verdict: VerdictPersisted}
	known := Ruling{Verdict: VerdictKnown}
	soldOut := Ruling{VerdictRejected, ReasonSoldOut}
	already := Ruling{VerdictRejected, ReasonAlreadyBought}

	for _, c := range []struct {
		name      string
		remaining int64
		known     map[string]bool
		buyers    map[string]bool
		events    []Event
		rulings   []Ruling
		subtract  int64
	}{
		{name: "nothing to do", remaining: 1, rulings: []Ruling{}},
		{name: "one", remaining: 1, events: []Event{buy("p1", "bob", 1)}, rulings: []Ruling{persisted}, subtract: 1},
		{name: "last units by quantity", remaining: 3, events: []Event{buy("p1", "bob", 3)}, rulings: []Ruling{persisted}, subtract: 3},
		{name: "quantity one too many", remaining: 2, events: []Event{buy("p1", "bob", 3)}, rulings: []Ruling{soldOut}},
		{name: "oversold", remaining: 1, events: []Event{buy("p1", "bob", 1), buy("p2", "ann", 1)},
			rulings: []Ruling{persisted, soldOut}, subtract: 1},
		{name: "a smaller one still fits after a rejected one", remaining: 2,
			events:  []Event{buy("p1", "bob", 3), buy("p2", "ann", 2)},
			rulings: []Ruling{soldOut, persisted}, subtract: 2},
		{name: "known to the ledger", remaining: 5, known: set("p1"), events: []Event{buy("p1", "bob", 1)}, rulings: []Ruling{known}},
		{name: "known wins over bought", remaining: 5, known: set("p1"), buyers: set("bob"),
			events: []Event{buy("p1", "bob", 1)}, rulings: []Ruling{known}},
		{name: "twice in the batch", remaining: 5, events: []Event{buy("p1", "bob", 1), buy("p1", "bob", 1)},
			rulings: []Ruling{persisted, known}, subtract: 1},
		{name: "rejected, then again", remaining: 0, events: []Event{buy("p1", "bob", 1), buy("p1", "bob", 1)},
			rulings: []Ruling{soldOut, known}},
		{name: "bought before", remaining: 5, buyers: set("bob"), events: []Event{buy("p1", "bob", 1)}, rulings: []Ruling{already}},
		{name: "bought in the batch", remaining: 5, events: []Event{buy("p1", "bob", 1), buy("p2", "bob", 1)},
			rulings: []Ruling{persisted, already}, subtract: 1},
		{name: "bought is told before sold out", remaining: 0, buyers: set("bob"), events: []Event{buy("p1", "bob", 1)}, rulings: []Ruling{already}},
		{name: "a rejected buyer is none", remaining: 1, events: []Event{buy("p1", "bob", 2), buy("p2", "bob", 1)},
			rulings: []Ruling{soldOut, persisted}, subtract: 1},
		{name: "bob is not Bob", remaining: 2, buyers: set("bob"), events: []Event{buy("p1", "Bob", 1)}, rulings: []Ruling{persisted}, subtract: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Settle(c.remaining, c.known, c.buyers, c.events)
			if !slices.Equal(got.Rulings, c.rulings) || got.Subtract != c.subtract {
				t.Errorf("got %v, want %v and %d", got, c.rulings, c.subtract)
			}
		})
	}
}

// A book is a ledger of one sale in memory: Settle and what its caller does.
type book struct {
	remaining     int64
	known, buyers map[string]bool
}

func (b *book) settle(events []Event) []Ruling {
	s := Settle(b.remaining, b.known, b.buyers, events)
	b.remaining -= s.Subtract
	for i, r := range s.Rulings {
		b.known[events[i].PurchaseID] = true
		if r.Verdict == VerdictPersisted {
			b.buyers[events[i].UserID] = true
		}
	}
	return s.Rulings
}

func (b book) clone() book {
	return book{b.remaining, maps.Clone(b.known), maps.Clone(b.buyers)}
}

// Few users, IDs and units make every kind of collision likely.
func TestSettleHoldsForAnyBatch(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		start := book{r.Int64N(8), set(), set()}
		for range r.IntN(4) {
			start.known[fmt.Sprint("p", r.IntN(12))] = true
			start.buyers[fmt.Sprint("u", r.IntN(8))] = true
		}
		events := make([]Event, r.IntN(16))
		for i := range events {
			events[i] = buy(fmt.Sprint("p", r.IntN(12)), fmt.Sprint("u", r.IntN(8)), 1+r.Int64N(3))
		}

		whole := start.clone()
		rulings := whole.settle(events)

		var persisted int64
		for i, ruling := range rulings {
			if ruling.Verdict == VerdictPersisted {
				persisted += events[i].Quantity
			}
			if (ruling.Verdict == VerdictRejected) != (ruling.Reason != "") {
				t.Fatalf("seed %d: event %d is %v", seed, i, ruling)
			}
		}
		if whole.remaining < 0 || persisted != start.remaining-whole.remaining {
			t.Fatalf("seed %d: %d left of %d, %d persisted", seed, whole.remaining, start.remaining, persisted)
		}

		again := whole.clone()
		for i, ruling := range again.settle(events) {
			if ruling.Verdict != VerdictKnown {
				t.Fatalf("seed %d: event %d settled again is %v", seed, i, ruling)
			}
		}
		if again.remaining != whole.remaining {
			t.Fatalf("seed %d: settling again took %d units", seed, whole.remaining-again.remaining)
		}

		for cut := range len(events) + 1 {
			parts := start.clone()
			got := slices.Concat(parts.settle(events[:cut]), parts.settle(events[cut:]))
			if !slices.Equal(got, rulings) || parts.remaining != whole.remaining {
				t.Fatalf("seed %d: cut at %d: %v, want %v", seed, cut, got, rulings)
			}
		}
	}
}
