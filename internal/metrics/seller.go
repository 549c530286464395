package metrics

import (
	"cmp"
	"context"
	"time"

	"flashsale/internal/stock"
)

// Seller counts and times the purchases of next. outcome gives an error its
// label, which is that of the HTTP interface.
func (m *Metrics) Seller(next stock.Seller, outcome func(error) string) stock.Seller {
	m.registry.MustRegister(m.purchases, m.purchaseSeconds)
	return &seller{next, m, outcome}
}

type seller struct {
	next    stock.Seller
	metrics *Metrics
	outcome func(error) string
}

func (s *seller) Purchase(ctx context.Context, request stock.Request) (stock.Receipt, error) {
	start := time.Now()
	receipt, err := s.next.Purchase(ctx, request)
	// A request that was refused before its sale was found has no variant.
	variant, outcome := cmp.Or(receipt.Variant, "unknown"), s.outcome(err)
	s.metrics.purchases.WithLabelValues(variant, outcome).Inc()
	s.metrics.purchaseSeconds.WithLabelValues(variant, outcome).Observe(time.Since(start).Seconds())
	return receipt, err
}
