package redisstock

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"flashsale/internal/stock"
)

// PurchaseOf finds a user's live purchase in a sale, which the ledger may not
// have yet: stock.ErrPurchaseNotFound when there is none, whether or not there
// is such a sale.
func (s *Store) PurchaseOf(ctx context.Context, saleID, userID string) (stock.Purchase, error) {
	purchaseID, err := s.client.HGet(ctx, s.keys.Buyers(saleID), userID).Result()
	switch {
	case errors.Is(err, redis.Nil):
		return stock.Purchase{}, fmt.Errorf("redisstock: %w: %s has none in %s", stock.ErrPurchaseNotFound, userID, saleID)
	case err != nil:
		return stock.Purchase{}, unavailable(err)
	}
	return s.Purchase(ctx, purchaseID)
}
