package stock

// Standing is what a counter knows when it decides on a batch of one sale.
type Standing struct {
	State     State             // at this instant, by the counter's clock
	Limit     int64             // units a user may buy
	Remaining int64             // units left
	Known     map[string]Answer // those of the batch's purchase IDs that were accepted before
	Buyers    map[string]string // those of the batch's users that have a live purchase, and which
}

// Answer is what an accepted purchase was answered, kept for its repetitions.
type Answer struct {
	Quantity  int64
	Remaining int64
	Fence     uint64
}

// Replay is the answer to a repetition of the purchase, asking for quantity.
func (a Answer) Replay(quantity int64) Result {
	if quantity != a.Quantity {
		return Result{Err: ErrKeyReused}
	}
	return Result{Remaining: a.Remaining, Fence: a.Fence, Replayed: true}
}

// Decide answers a batch, in order, each deduction on its own: one that can't
// be had does not spoil those behind it. It changes nothing; what it accepted
// anew are the results with neither Err nor Replayed. The order of the checks
// is the counters' common contract: known purchase, window, limit, already
// bought, sold out.
func (s Standing) Decide(fence uint64, batch []Deduction) []Result {
	results := make([]Result, len(batch))
	accepted := make(map[string]Answer)
	bought := make(map[string]string)
	remaining := s.Remaining
	for i, d := range batch {
		if answer, known := either(accepted, s.Known, d.PurchaseID); known {
			results[i] = answer.Replay(d.Quantity)
			continue
		}
		held, holds := either(bought, s.Buyers, d.UserID)
		switch {
		case s.State == StateScheduled:
			results[i].Err = ErrSaleNotStarted
		case s.State != StateOpen:
			results[i].Err = ErrSaleClosed
		case d.Quantity > s.Limit:
			results[i].Err = &OverLimitError{Limit: s.Limit}
		case holds:
			results[i].Err = &AlreadyBoughtError{PurchaseID: held}
		case d.Quantity > remaining:
			results[i].Err = ErrSoldOut
		default:
			remaining -= d.Quantity
			results[i] = Result{Remaining: remaining, Fence: fence}
			accepted[d.PurchaseID] = Answer{Quantity: d.Quantity, Remaining: remaining, Fence: fence}
			bought[d.UserID] = d.PurchaseID
		}
	}
	return results
}

func either[V any](first, second map[string]V, key string) (V, bool) {
	if v, ok := first[key]; ok {
		return v, true
	}
	v, ok := second[key]
	return v, ok
}
