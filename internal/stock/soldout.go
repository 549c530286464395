package stock

import (
	"hash/maphash"
	"sync"
	"time"
)

const (
	// soldOutLifetime is how long a refusal stands, from when the counter was asked
	// for it. So long a cancelled unit may stay unseen, whoever cancelled it.
	soldOutLifetime = 200 * time.Millisecond

	soldOutSales  = 1024
	soldOutBuyers = 1 << 16 // of each of two generations
)

// soldOut remembers for a moment that a sale is sold out, so that those who come
// late to a rush are answered without a round trip.
//
// It answers only who would get the same answer from the counter:
//   - A request with an idempotency key may be the repetition of an accepted
//     purchase, made through any process: the counter is asked.
//   - A request above the sale's limit is refused for that: the counter is asked.
//   - Fewer units than were refused may still be there: the counter is asked.
//   - Who is known here to have bought is told so, by the counter. Who bought
//     through another process and sends no key may read "sold out" meanwhile.
//   - Where a sale is closed it is forgotten; other processes may answer "sold
//     out" a moment longer.
type soldOut struct {
	mu    sync.Mutex
	sales map[string]refusal

	// By hash: who shares another's is asked about needlessly, nothing worse.
	seed maphash.Seed
	buyers,
	before map[uint64]struct{} // the older generation
}

func newSoldOut() soldOut { return soldOut{seed: maphash.MakeSeed()} }

type refusal struct {
	quantity int64 // so many units, or more, can't be had
	until    time.Time
}

type buyer struct{ saleID, userID string }

// refuses says whether an order of a request is refused without asking.
func (s *soldOut) refuses(request Request, sale Sale, now time.Time) bool {
	if request.IdempotencyKey != "" || request.Quantity > sale.PerUserLimit {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, known := s.sales[sale.ID]
	if !known || request.Quantity < r.quantity || !now.Before(r.until) {
		return false
	}
	b := maphash.Comparable(s.seed, buyer{sale.ID, request.UserID})
	_, bought := s.buyers[b]
	_, boughtBefore := s.before[b]
	return !bought && !boughtBefore
}

// Closed is told when a sale was closed through this process: from now on the
// counter says so to everybody.
func (c *Combining) Closed(saleID string) {
	c.soldOut.mu.Lock()
	defer c.soldOut.mu.Unlock()
	delete(c.soldOut.sales, saleID)
}

// learn takes note of the counter's results, for which it was asked at the
// instant sent.
func (s *soldOut) learn(batch []*ticket, results []Result, sent time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, result := range results {
		d := batch[i].deduction
		switch result.Err.(type) {
		case nil, *AlreadyBoughtError:
			s.bought(buyer{d.SaleID, d.UserID})
			continue
		}
		if result.Err == ErrSoldOut {
			s.refused(d, sent)
		}
	}
}

func (s *soldOut) bought(b buyer) {
	if s.buyers == nil || len(s.buyers) >= soldOutBuyers {
		// As large as the one before, which has grown as far as it will.
		s.before, s.buyers = s.buyers, make(map[uint64]struct{}, len(s.buyers))
	}
	s.buyers[maphash.Comparable(s.seed, b)] = struct{}{}
}

func (s *soldOut) refused(d Deduction, sent time.Time) {
	if r, known := s.sales[d.SaleID]; known && d.Quantity > r.quantity && sent.Before(r.until) {
		return // what is known says more
	}
	if s.sales == nil || len(s.sales) >= soldOutSales {
		s.sales = make(map[string]refusal) // they last for a moment only
	}
	s.sales[d.SaleID] = refusal{d.Quantity, sent.Add(soldOutLifetime)}
}
