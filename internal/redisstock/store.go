package redisstock

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"flashsale/internal/rediskey"
	"flashsale/internal/stock"
)

// Options configures New and NewOutbox.
type Options struct {
	Keys rediskey.Keys // default: those of an installation that has Redis to itself
}

// Store is what both counters share: the sales as they stand in Redis. It is
// safe for concurrent use.
type Store struct {
	client redis.UniversalClient
	keys   rediskey.Keys
}

// New makes a Store on client, which should not retry by itself (MaxRetries -1):
// the Store repeats what may be repeated, and must see each error to know
// whether a deduction may have happened.
func New(client redis.UniversalClient, options Options) *Store {
	return &Store{client: client, keys: options.Keys}
}

var _ stock.Desk = (*Store)(nil)

// Preload makes a sale sellable; see stock.Counter. A sale whose purchases are
// still there while it is not is refused as stock.ErrSaleExists too.
func (s *Store) Preload(ctx context.Context, sale stock.Sale) error {
	keys := []string{s.keys.Sale(sale.ID), s.keys.Buyers(sale.ID), s.keys.Purchases(sale.ID)}
	reply, err := s.call(ctx, stock.ErrUnavailable, preloadScript, keys, saleFields(sale)...)
	if err != nil {
		return err
	}
	switch reply[0] {
	case "created":
		return nil
	case "leftovers":
		return fmt.Errorf("redisstock: %w: %s has purchases but is gone itself", stock.ErrSaleExists, sale.ID)
	}
	existing, err := parseSale(sale.ID, reply[1:])
	if err != nil {
		return err
	}
	if !existing.SameTerms(sale) {
		return fmt.Errorf("redisstock: %w: %s", stock.ErrSaleExists, sale.ID)
	}
	return nil
}

// Snapshot reads a sale at one instant; see stock.Counter.
func (s *Store) Snapshot(ctx context.Context, saleID string) (stock.Snapshot, error) {
	reply, err := s.call(ctx, stock.ErrUnavailable, snapshotScript, []string{s.keys.Sale(saleID)})
	if err != nil {
		return stock.Snapshot{}, err
	}
	if reply[0] == "missing" {
		return stock.Snapshot{}, notFound(saleID)
	}
	snapshot, err := parseSale(saleID, reply[1:])
	snapshot.State = stock.State(fmt.Sprint(reply[0]))
	return snapshot, err
}

// Close ends a sale; see stock.Desk.
func (s *Store) Close(ctx context.Context, saleID string) error {
	reply, err := s.call(ctx, stock.ErrUnavailable, closeScript, []string{s.keys.Sale(saleID)})
	if err != nil {
		return err
	}
	if reply[0] == "missing" {
		return notFound(saleID)
	}
	return nil
}

// Purchase finds an accepted purchase; see stock.Desk.
func (s *Store) Purchase(ctx context.Context, purchaseID string) (stock.Purchase, error) {
	saleID, ok := stock.SaleOf(purchaseID)
	if !ok {
		return stock.Purchase{}, fmt.Errorf("redisstock: %w: %q", stock.ErrPurchaseNotFound, purchaseID)
	}
	stored, err := s.client.HGet(ctx, s.keys.Purchases(saleID), purchaseID).Result()
	switch {
	case errors.Is(err, redis.Nil):
		return stock.Purchase{}, fmt.Errorf("redisstock: %w: %s", stock.ErrPurchaseNotFound, purchaseID)
	case err != nil:
		return stock.Purchase{}, unavailable(err)
	}
	return parsePurchase(saleID, purchaseID, stored)
}

// EachPurchase scans the accepted purchases of a sale; see stock.Desk.
func (s *Store) EachPurchase(ctx context.Context, saleID string, fn func(stock.Purchase) error) error {
	for cursor := uint64(0); ; {
		pairs, next, err := s.client.HScan(ctx, s.keys.Purchases(saleID), cursor, "", scanCount).Result()
		if err != nil {
			return unavailable(err)
		}
		for i := 0; i+1 < len(pairs); i += 2 {
			purchase, err := parsePurchase(saleID, pairs[i], pairs[i+1])
			if err != nil {
				return err
			}
			if err := fn(purchase); err != nil {
				return err
			}
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}

// scanCount is how many elements a step of a scan looks at.
const scanCount = 500

// deductKeys are the keys of a script that deducts.
func (s *Store) deductKeys(saleID string) []string {
	return []string{
		s.keys.Sale(saleID), s.keys.Buyers(saleID), s.keys.Purchases(saleID),
		s.keys.Outbox(rediskey.Shard(saleID)),
	}
}

// saleOf returns the sale that a batch is of.
func saleOf(batch []stock.Deduction) (string, error) {
	for _, d := range batch[1:] {
		if d.SaleID != batch[0].SaleID {
			return "", fmt.Errorf("redisstock: batch of two sales, %s and %s", batch[0].SaleID, d.SaleID)
		}
	}
	return batch[0].SaleID, nil
}

// eventOf is the JSON of what the outbox passes on when d is accepted.
func eventOf(d stock.Deduction, fence uint64) (string, error) {
	text, err := appendEvent(make([]byte, 0, eventSize), d, fence)
	return string(text), err
}

func appendEvent(to []byte, d stock.Deduction, fence uint64) ([]byte, error) {
	to, err := d.Event(fence).AppendJSON(to)
	if err != nil {
		return nil, fmt.Errorf("redisstock: event of %s: %w", d.PurchaseID, err)
	}
	return to, nil
}

func notFound(saleID string) error {
	return fmt.Errorf("redisstock: %w: %s", stock.ErrSaleNotFound, saleID)
}

func stale(saleID string) error {
	return fmt.Errorf("redisstock: %w: %s", stock.ErrStale, saleID)
}

func unexpected(reply any) error {
	return unavailable(fmt.Errorf("script answered %v", reply))
}
