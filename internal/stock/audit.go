package stock

// Audit compares what a sale started with, what its counter says and what the
// ledger has: the one truth that people, tests and load scripts read. All
// numbers are units. Its JSON keys are a contract.
type Audit struct {
	SaleID      string `json:"sale_id"`
	Variant     string `json:"variant"`
	Initial     int64  `json:"initial"`      // I
	Remaining   int64  `json:"remaining"`    // R
	Accepted    int64  `json:"accepted"`     // A, including what was cancelled since
	Cancelled   int64  `json:"cancelled"`    // C
	Persisted   int64  `json:"persisted"`    // the ledger's: persisted or paid
	Rejected    int64  `json:"rejected"`     // the ledger's: accepted, but there was nothing left to give
	InFlight    int64  `json:"in_flight"`    // accepted, not in the ledger yet
	Oversold    int64  `json:"oversold"`     // sold beyond what there was
	LostUpdates int64  `json:"lost_updates"` // sold, but the counter did not fall by it
	Undersold   int64  `json:"undersold"`    // the counter fell by it, but nobody was sold it
	Duplicates  int64  `json:"duplicates"`   // in the ledger, but never accepted
	Settled     bool   `json:"settled"`      // the ledger has caught up

	// RedisLost: the counter was lost and the sale loaded again, so its sums began
	// anew. What it had sold before and not passed on, nobody knows.
	RedisLost bool `json:"redis_lost,omitempty"`

	// Deep is the comparison purchase by purchase, nil unless it was asked for.
	Deep *Comparison `json:"deep,omitempty"`
}

// NewAudit does the sums. The ledger's totals must have been read before the
// snapshot: what is persisted in between then counts as in flight for a moment,
// while the other way round it would look like a duplicate.
func NewAudit(counter Snapshot, ledger LedgerTotals) Audit {
	net := counter.Accepted - counter.Cancelled    // sold, and not given back
	gone := counter.Stock - counter.Remaining      // missing from the counter
	inLedger := ledger.Persisted + ledger.Rejected // of everything ever accepted
	inLedger += ledger.Cancelled
	a := Audit{
		SaleID: counter.ID, Variant: counter.Variant,
		Initial: counter.Stock, Remaining: counter.Remaining,
		Accepted: counter.Accepted, Cancelled: counter.Cancelled,
		Persisted: ledger.Persisted, Rejected: ledger.Rejected,
		InFlight:    max(0, counter.Accepted-inLedger),
		Oversold:    max(0, net-counter.Stock),
		LostUpdates: max(0, net-gone),
		Undersold:   max(0, gone-net),
		Duplicates:  max(0, inLedger-counter.Accepted),
	}
	a.Settled = a.InFlight == 0 && counter.Cancelled == ledger.Cancelled
	a.RedisLost = ledger.Preloads > 1
	return a
}

// OversellRate is oversold / accepted, 0 when nothing was accepted.
func (a Audit) OversellRate() float64 {
	if a.Accepted == 0 {
		return 0
	}
	return float64(a.Oversold) / float64(a.Accepted)
}

// Unsold is what a race left on the shelf: of the units that users, each
// wanting one, could have bought, those that nobody got.
func (a Audit) Unsold(users int64) int64 {
	return max(0, min(a.Initial, users)-a.Accepted)
}

// Exact reports whether the sale is settled and every unit accounted for: none
// oversold, lost, duplicated or gone, the counter never lost, and, if that was looked at, the two sides
// agreeing on every purchase.
func (a Audit) Exact() bool {
	return a.Settled && !a.RedisLost && a.Oversold == 0 && a.LostUpdates == 0 && a.Undersold == 0 && a.Duplicates == 0 &&
		(a.Deep == nil || a.Deep.Same())
}
