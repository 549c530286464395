package stock

// Why the ledger rejects an event that the counter had accepted.
const (
	ReasonSoldOut       = "sold_out"
	ReasonAlreadyBought = "already_bought"
)

// Ruling is what Settle made of one event.
type Ruling struct {
	Verdict Verdict // persisted, rejected or known
	Reason  string  // why it is rejected, empty otherwise
}

// Settlement is what Settle made of a batch.
type Settlement struct {
	Rulings  []Ruling // in the events' order
	Subtract int64    // units to take off the sale's remaining, never more than there are
}

// Settle judges a batch of one sale's deductions, in order, against the ledger:
// remaining is what the ledger has left, known holds the purchase IDs that have
// a row of whatever status, buyers the users with a live purchase. It changes
// none of its arguments.
//
// A unit is the buyer's only while the ledger has it to give; what a lock that
// failed sold beyond that is rejected here. Where a batch is cut makes no
// difference, and neither does settling an event again.
func Settle(remaining int64, known, buyers map[string]bool, events []Event) Settlement {
	s := Settlement{Rulings: make([]Ruling, len(events))}
	seen := make(map[string]bool, len(events))
	bought := make(map[string]bool, len(events))
	for i, e := range events {
		switch {
		case known[e.PurchaseID] || seen[e.PurchaseID]:
			s.Rulings[i] = Ruling{Verdict: VerdictKnown}
			continue
		case buyers[e.UserID] || bought[e.UserID]:
			s.Rulings[i] = Ruling{VerdictRejected, ReasonAlreadyBought}
		case e.Quantity > remaining-s.Subtract:
			s.Rulings[i] = Ruling{VerdictRejected, ReasonSoldOut}
		default:
			s.Rulings[i] = Ruling{Verdict: VerdictPersisted}
			s.Subtract += e.Quantity
			bought[e.UserID] = true
		}
		seen[e.PurchaseID] = true
	}
	return s
}
