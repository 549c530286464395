// Package audit gathers what a sale's audit compares. The comparison itself is
// stock.NewAudit and stock.Comparer; what is decided here is the order of
// reading, and how long to wait for the ledger to catch up.
package audit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"flashsale/internal/backoff"
	"flashsale/internal/stock"
)

// Counter, Desk and Ledger are what an audit needs of the ports of these names.
type (
	Counter interface {
		Snapshot(ctx context.Context, saleID string) (stock.Snapshot, error)
	}
	Desk interface {
		EachPurchase(ctx context.Context, saleID string, fn func(stock.Purchase) error) error
	}
	Ledger interface {
		Totals(ctx context.Context, saleID string) (stock.LedgerTotals, error)
		EachPurchase(ctx context.Context, saleID string, fn func(stock.Purchase) error) error
	}
)

// Auditor audits sales.
type Auditor struct {
	counter Counter
	desk    Desk
	ledger  Ledger
}

// New returns an Auditor that reads from these three.
func New(counter Counter, desk Desk, ledger Ledger) *Auditor {
	return &Auditor{counter, desk, ledger}
}

// Options of one audit.
type Options struct {
	// Wait is how long to wait for the sale to settle. 0: look once.
	Wait time.Duration

	// Deep compares the purchases one by one as well. It holds the sale's
	// purchases in memory.
	Deep bool
}

// Pauses between two looks.
const (
	pollMin = 20 * time.Millisecond
	pollMax = 500 * time.Millisecond
)

// Audit returns the first audit that is settled, or the last one when Wait has
// passed: Audit.Settled says which. While it waits, a store that is away is
// waited for too.
//
// Its error is stock.ErrSaleNotFound, stock.ErrUnavailable (also for a sale
// that the ledger has and the counter hasn't) or the context's.
func (a *Auditor) Audit(ctx context.Context, saleID string, o Options) (stock.Audit, error) {
	deadline := time.Now().Add(o.Wait)
	var last stock.Audit
	err := errors.New("audit: never looked")
	for pause := pollMin; ; pause = min(2*pause, pollMax) {
		audit, lookErr := a.look(ctx, saleID, o.Deep, time.Until(deadline) <= 0)
		switch {
		case lookErr == nil && audit.Settled:
			return audit, nil
		case lookErr == nil:
			last, err = audit, nil
		case ctx.Err() != nil:
			return last, fmt.Errorf("audit: %w", ctx.Err())
		case !errors.Is(lookErr, stock.ErrUnavailable):
			return last, lookErr
		case err != nil: // nothing better to answer yet
			err = lookErr
		}
		left := time.Until(deadline)
		if left <= 0 {
			return last, err
		}
		if !backoff.Wait(ctx, min(pause, left)) {
			return last, fmt.Errorf("audit: %w", ctx.Err())
		}
	}
}

// look audits once. The purchases are compared only when the sums are settled,
// or when it is the last look: waiting costs two small reads each time.
func (a *Auditor) look(ctx context.Context, saleID string, deep, final bool) (stock.Audit, error) {
	audit, err := a.sums(ctx, saleID, nil)
	if err != nil || !deep || !audit.Settled && !final {
		return audit, err
	}
	var comparer stock.Comparer
	audit, err = a.sums(ctx, saleID, func() error { return a.compare(ctx, saleID, &comparer) })
	if err != nil {
		return audit, err
	}
	comparison := comparer.Comparison()
	audit.Deep = &comparison
	return audit, nil
}

// sums reads the ledger, then the counter, with whatever else is to be read in
// between. What is accepted meanwhile then counts as in flight, which it is;
// the other way round it would look like a duplicate. With the purchases read
// in between, a settled audit also says that none was accepted during that, so
// what the comparison finds missing is missing.
func (a *Auditor) sums(ctx context.Context, saleID string, between func() error) (stock.Audit, error) {
	totals, err := a.ledger.Totals(ctx, saleID)
	inLedger := !errors.Is(err, stock.ErrSaleNotFound) // without it the ledger has no units of it either
	if err != nil && inLedger {
		return stock.Audit{}, fmt.Errorf("audit: ledger: %w", err)
	}
	if between != nil {
		if err := between(); err != nil {
			return stock.Audit{}, err
		}
	}
	snapshot, err := a.counter.Snapshot(ctx, saleID)
	switch {
	case errors.Is(err, stock.ErrSaleNotFound) && totals.Preloads > 0:
		return stock.Audit{}, fmt.Errorf("audit: %w: sale %s was loaded, and Redis has lost it: there is nothing to compare the ledger with (it has %d units of it)",
			stock.ErrUnavailable, saleID, totals.Persisted+totals.Rejected+totals.Cancelled)
	case errors.Is(err, stock.ErrSaleNotFound) && inLedger:
		return stock.Audit{}, fmt.Errorf("audit: %w: sale %s is in the ledger, but not in the counter", stock.ErrUnavailable, saleID)
	case err != nil:
		return stock.Audit{}, fmt.Errorf("audit: counter: %w", err)
	}
	return stock.NewAudit(snapshot, totals), nil
}

// compare reads both sides' purchases, the ledger's first.
func (a *Auditor) compare(ctx context.Context, saleID string, comparer *stock.Comparer) error {
	each := func(add func(stock.Purchase)) func(stock.Purchase) error {
		return func(p stock.Purchase) error {
			add(p)
			return ctx.Err()
		}
	}
	if err := a.ledger.EachPurchase(ctx, saleID, each(comparer.Ledger)); err != nil {
		return fmt.Errorf("audit: ledger: %w", err)
	}
	if err := a.desk.EachPurchase(ctx, saleID, each(comparer.Counter)); err != nil {
		return fmt.Errorf("audit: counter: %w", err)
	}
	return nil
}
