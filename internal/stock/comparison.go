package stock

import "slices"

// maxSample is how many purchase IDs a Difference names.
const maxSample = 10

// Difference is a number of purchases, and the IDs of the first of them.
type Difference struct {
	Count  int64    `json:"count"`
	Sample []string `json:"sample"` // at most 10, sorted
}

// Comparison holds counter and ledger side by side, purchase by purchase: in
// sums, one purchase lost and another one counted twice cancel out.
type Comparison struct {
	Compared        int64      `json:"compared"`          // purchases that both sides have
	MissingInLedger Difference `json:"missing_in_ledger"` // accepted, but not (or not yet) in the ledger
	UnknownToRedis  Difference `json:"unknown_to_redis"`  // in the ledger, but never accepted
	Differing       Difference `json:"differing"`         // on both sides, with another user, quantity, price or fence
}

// Same reports whether no difference was found.
func (c Comparison) Same() bool {
	return c.MissingInLedger.Count == 0 && c.UnknownToRedis.Count == 0 && c.Differing.Count == 0
}

// Comparer makes a Comparison. Feed it the ledger's purchases first, all of
// them, then the counter's: read in this order, what is accepted meanwhile can
// only be missing in the ledger, as it really is. The zero value is ready.
type Comparer struct {
	ledger   map[string]Purchase
	seen     map[string]struct{}
	differ   map[string]struct{}
	missing  []string
	compared int64
}

// Ledger adds a purchase as the ledger has it.
func (c *Comparer) Ledger(p Purchase) {
	if c.ledger == nil {
		c.ledger = make(map[string]Purchase)
		c.seen = make(map[string]struct{})
		c.differ = make(map[string]struct{})
	}
	if _, twice := c.ledger[p.PurchaseID]; twice {
		c.differ[p.PurchaseID] = struct{}{}
	}
	c.ledger[p.PurchaseID] = p
}

// Counter adds a purchase as the counter has it. Adding one again is no harm: a
// scan of the counter may yield it twice.
func (c *Comparer) Counter(p Purchase) {
	if c.seen == nil {
		c.seen = make(map[string]struct{})
		c.differ = make(map[string]struct{})
	}
	if _, twice := c.seen[p.PurchaseID]; twice {
		return
	}
	c.seen[p.PurchaseID] = struct{}{}
	other, found := c.ledger[p.PurchaseID]
	switch {
	case !found:
		c.missing = append(c.missing, p.PurchaseID)
		return
	case p.SaleID != other.SaleID, p.UserID != other.UserID, p.Quantity != other.Quantity,
		p.PriceCents != other.PriceCents, p.Fence != other.Fence:
		c.differ[p.PurchaseID] = struct{}{}
	}
	c.compared++
}

// Comparison is the result so far.
func (c *Comparer) Comparison() Comparison {
	var unknown, differing []string
	for id := range c.ledger {
		if _, found := c.seen[id]; !found {
			unknown = append(unknown, id)
		}
	}
	for id := range c.differ {
		differing = append(differing, id)
	}
	return Comparison{
		Compared:        c.compared,
		MissingInLedger: difference(slices.Clone(c.missing)),
		UnknownToRedis:  difference(unknown),
		Differing:       difference(differing),
	}
}

func difference(ids []string) Difference {
	slices.Sort(ids)
	d := Difference{Count: int64(len(ids)), Sample: []string{}}
	d.Sample = append(d.Sample, ids[:min(len(ids), maxSample)]...)
	return d
}
