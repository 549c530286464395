package app

import (
	"context"
	"errors"
	"slices"

	"flashsale/internal/redisstock"
	"flashsale/internal/sqlstock"
	"flashsale/internal/stock"
)

// fromLedger are the variants that sell straight out of the ledger. Redis has
// their sales' terms, so that they are found like all others, but not their
// stock.
var fromLedger = []string{"mysql-conditional", "mysql-optimistic"}

// shelves is the counter as one looks at it from outside: wherever a sale's
// stock is kept.
type shelves struct {
	*redisstock.Store
	ledger *sqlstock.DB
}

// Preload puts a sale of the ledger there, unless it had been there and is lost.
func (s shelves) Preload(ctx context.Context, sale stock.Sale) error { return s.load(ctx, sale, false) }

// load is Preload, also of a sale that is lost and has sold nothing if somebody
// says again.
func (s shelves) load(ctx context.Context, sale stock.Sale, again bool) error {
	lost, noted, err := s.loadable(ctx, sale.ID, again)
	if err != nil {
		return err
	}
	if lost { // first: an audit must not call exact what comes of it
		if err := s.ledger.NotePreload(ctx, sale.ID, true); err != nil {
			return err
		}
	}
	if err := s.Store.Preload(ctx, sale); err != nil || noted {
		return err
	}
	// Not before it is there: a preload that failed can then be repeated.
	return s.ledger.NotePreload(ctx, sale.ID, false)
}

// loadable finds out whether load may go on: whether it would bring back a sale
// that Redis has lost, and whether the ledger has noted that it was there. The
// ledger is read first: what it knows to be in Redis then, Redis had before it is
// asked, though others load the same sale at the same time.
func (s shelves) loadable(ctx context.Context, saleID string, again bool) (lost, noted bool, err error) {
	record, err := s.ledger.Sale(ctx, saleID)
	if err != nil {
		return false, false, err
	}
	totals, err := s.ledger.Totals(ctx, saleID)
	if err != nil {
		return false, false, err
	}
	noted = totals.Preloads > 0
	_, err = s.Store.Snapshot(ctx, saleID)
	if !errors.Is(err, stock.ErrSaleNotFound) || slices.Contains(fromLedger, record.Variant) { // the latter's stock can't be lost
		if errors.Is(err, stock.ErrSaleNotFound) {
			err = nil
		}
		return false, noted, err
	}
	return noted, noted, record.Loadable(totals, again)
}

// Snapshot reads a sale where its stock is.
func (s shelves) Snapshot(ctx context.Context, saleID string) (stock.Snapshot, error) {
	snapshot, err := s.Store.Snapshot(ctx, saleID)
	if err != nil || !slices.Contains(fromLedger, snapshot.Variant) {
		return snapshot, err
	}
	return s.ledger.Conditional().Snapshot(ctx, saleID)
}

// EachPurchase calls fn for what was accepted, which for a sale from the ledger
// is what is in the ledger.
func (s shelves) EachPurchase(ctx context.Context, saleID string, fn func(stock.Purchase) error) error {
	snapshot, err := s.Store.Snapshot(ctx, saleID)
	switch {
	case errors.Is(err, stock.ErrSaleNotFound): // it may have purchases left
	case err != nil:
		return err
	case slices.Contains(fromLedger, snapshot.Variant):
		return s.ledger.EachPurchase(ctx, saleID, fn)
	}
	return s.Store.EachPurchase(ctx, saleID, fn)
}

// desk tells the seller of a sale that was closed here.
type desk struct {
	shelves
	seller *stock.Combining
}

func (d desk) Close(ctx context.Context, saleID string) error {
	err := d.shelves.Close(ctx, saleID)
	if err == nil {
		d.seller.Closed(saleID)
	}
	return err
}
