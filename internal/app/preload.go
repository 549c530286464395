package app

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"flashsale/internal/stock"
)

// Preloaded says what became of each sale that was to be loaded, by ID.
type Preloaded struct {
	Loaded []string `json:"loaded"` // sellable from now on
	There  []string `json:"there"`  // were sellable already, nothing changed
	Closed []string `json:"closed"` // closed or over: not loaded
}

// ErrNotOffered is a sale whose variant no API with these settings sells.
var ErrNotOffered = errors.New("app: the sale's variant is not offered here")

// Preload makes sales sellable: in the ledger first, so that nothing is ever
// sold of a sale that the ledger doesn't know, then in Redis. Every sale is
// looked at before the first is written; after an error of the stores, repeating
// it completes what was begun.
//
// A sale that Redis had and has lost is refused, and with again only one of which
// the ledger has a purchase.
func (i *Installation) Preload(ctx context.Context, sales []stock.Sale, again bool) (Preloaded, error) {
	var wrong []error
	for _, sale := range sales {
		switch record, err := i.ledger.Sale(ctx, sale.ID); {
		case errors.Is(err, stock.ErrSaleNotFound):
		case err != nil:
			return Preloaded{}, err
		case !record.SameTerms(sale):
			wrong = append(wrong, fmt.Errorf("%s: %w", sale.ID, stock.ErrSaleExists))
		default:
			if err := i.loadable(ctx, record, again); err != nil {
				wrong = append(wrong, err)
			}
		}
	}
	if len(wrong) > 0 {
		return Preloaded{}, errors.Join(wrong...)
	}
	for _, sale := range sales {
		if err := i.ledger.InsertSale(ctx, sale); err != nil {
			return Preloaded{}, err
		}
	}
	done := Preloaded{Loaded: []string{}, There: []string{}, Closed: []string{}}
	for _, sale := range sales {
		record, err := i.ledger.Sale(ctx, sale.ID)
		if err != nil {
			return done, err
		}
		if err := i.load(ctx, record, again, &done); err != nil {
			return done, err
		}
	}
	return done, nil
}

// PreloadFromLedger makes every sale sellable that the ledger has and that is
// not over. A sale that can't be loaded doesn't keep the others back; the error
// names each. What again does is as for Preload.
func (i *Installation) PreloadFromLedger(ctx context.Context, again bool) (Preloaded, error) {
	const page = 100
	done := Preloaded{Loaded: []string{}, There: []string{}, Closed: []string{}}
	var wrong []error
	for after := ""; ; {
		records, err := i.ledger.Sales(ctx, after, page)
		if err != nil {
			return done, err
		}
		for _, record := range records {
			after = record.ID
			err := i.load(ctx, record, again, &done)
			switch {
			case err == nil:
			case errors.Is(err, stock.ErrSaleBegun), errors.Is(err, stock.ErrSaleLost), errors.Is(err, ErrNotOffered), errors.Is(err, stock.ErrSaleExists):
				wrong = append(wrong, err)
			default:
				return done, errors.Join(append(wrong, err)...)
			}
		}
		if len(records) < page {
			return done, errors.Join(wrong...)
		}
	}
}

// load brings one sale of the ledger into Redis and notes in done what it did.
func (i *Installation) load(ctx context.Context, record stock.SaleRecord, again bool, done *Preloaded) error {
	_, err := i.counter.Snapshot(ctx, record.ID)
	switch {
	case err == nil:
		if err := i.shelves().Preload(ctx, record.Sale); err != nil { // changes nothing, but compares the terms
			return err
		}
		done.There = append(done.There, record.ID)
		return nil
	case !errors.Is(err, stock.ErrSaleNotFound):
		return err
	case record.StateAt(i.now(), !record.ClosedAt.IsZero()) == stock.StateClosed:
		done.Closed = append(done.Closed, record.ID)
		return nil
	}
	if err := i.offered(record); err != nil {
		return err
	}
	if err := i.shelves().load(ctx, record.Sale, again); err != nil {
		return err
	}
	done.Loaded = append(done.Loaded, record.ID)
	return nil
}

// loadable is load's verdict without its doing.
func (i *Installation) loadable(ctx context.Context, record stock.SaleRecord, again bool) error {
	_, err := i.counter.Snapshot(ctx, record.ID)
	if errors.Is(err, stock.ErrSaleNotFound) && record.StateAt(i.now(), !record.ClosedAt.IsZero()) != stock.StateClosed {
		if err := i.offered(record); err != nil {
			return err
		}
		_, _, err := i.shelves().loadable(ctx, record.ID, again)
		return err
	}
	if errors.Is(err, stock.ErrSaleNotFound) {
		return nil
	}
	return err
}

// offered makes sure that the API offers a sale's variant.
func (i *Installation) offered(record stock.SaleRecord) error {
	if slices.Contains(i.config.Offered(), record.Variant) {
		return nil
	}
	why, known := i.config.Lacking()[record.Variant]
	if !known {
		why = "is unknown"
	}
	return fmt.Errorf("%s: %w: %s %s", record.ID, ErrNotOffered, record.Variant, why)
}
