package metrics

import (
	"context"
	"sync"
	"time"

	"flashsale/internal/stock"

	"github.com/prometheus/client_golang/prometheus"
)

// Seller counts and times the purchases of next. outcome gives an error its
// label, one of outcomes, which are those of the HTTP interface.
func (m *Metrics) Seller(next stock.Seller, outcomes []string, outcome func(error) string) stock.Seller {
	m.registry.MustRegister(m.purchases, m.purchaseSeconds)
	s := &seller{next: next, outcome: outcome, series: make(map[string]map[string]*purchaseSeries)}
	for _, variant := range withUnknown(m.variants) {
		s.series[variant] = make(map[string]*purchaseSeries)
		for _, code := range withUnknown(outcomes) {
			s.series[variant][code] = &purchaseSeries{make: func() (prometheus.Counter, prometheus.Observer) {
				return m.purchases.WithLabelValues(variant, code), m.purchaseSeconds.WithLabelValues(variant, code)
			}}
			if variant == unknown {
				m.purchases.WithLabelValues(variant, code) // so that the sum over variants begins with 0
			}
		}
	}
	return s
}

type seller struct {
	next    stock.Seller
	outcome func(error) string
	series  map[string]map[string]*purchaseSeries // variant, outcome; only read
}

func (s *seller) Purchase(ctx context.Context, request stock.Request) (stock.Receipt, error) {
	start := time.Now()
	receipt, err := s.next.Purchase(ctx, request)
	// A request that was refused before its sale was found has no variant.
	s.of(receipt.Variant, s.outcome(err)).add(time.Since(start))
	return receipt, err
}

func (s *seller) of(variant, outcome string) *purchaseSeries {
	outcomes, known := s.series[variant]
	if !known {
		outcomes = s.series[unknown]
	}
	series, known := outcomes[outcome]
	if !known {
		series = outcomes[unknown]
	}
	return series
}

// purchaseSeries are the two metrics of a variant and an outcome. They begin
// with the first purchase: most pairs never occur. After that no label is
// looked up again.
type purchaseSeries struct {
	make    func() (prometheus.Counter, prometheus.Observer)
	begin   sync.Once
	total   prometheus.Counter
	seconds prometheus.Observer
}

func (p *purchaseSeries) add(took time.Duration) {
	p.begin.Do(func() { p.total, p.seconds = p.make() })
	p.total.Inc()
	p.seconds.Observe(took.Seconds())
}
