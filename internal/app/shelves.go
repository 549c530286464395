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
