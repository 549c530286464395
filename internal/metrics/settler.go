package metrics

import (
	"context"

	"flashsale/internal/stock"

	"github.com/prometheus/client_golang/prometheus"
)

// Settler is what the syncer needs of a stock.Ledger.
type Settler interface {
	Settle(ctx context.Context, events []stock.Event) ([]stock.Verdict, error)
}

// Settler counts the verdicts of next.
func (m *Metrics) Settler(next Settler) Settler {
	m.registry.MustRegister(m.settled)
	s := &settler{next, make(map[string]map[stock.Verdict]prometheus.Counter)}
	for _, variant := range withUnknown(m.variants) {
		s.counters[variant] = make(map[stock.Verdict]prometheus.Counter)
		for _, verdict := range verdicts {
			s.counters[variant][verdict] = m.settled.WithLabelValues(variant, string(verdict))
		}
	}
	return s
}

// verdicts are all that a ledger gives. Each has its series from the beginning:
// the first rejected purchase must not be missed by a rate.
var verdicts = []stock.Verdict{stock.VerdictPersisted, stock.VerdictRejected, stock.VerdictKnown, stock.VerdictUnknownSale}

type settler struct {
	next     Settler
	counters map[string]map[stock.Verdict]prometheus.Counter // by variant; only read
}

func (s *settler) Settle(ctx context.Context, events []stock.Event) ([]stock.Verdict, error) {
	given, err := s.next.Settle(ctx, events)
	if err != nil || len(given) != len(events) {
		return given, err
	}
	for i, verdict := range given {
		counters, known := s.counters[events[i].Variant]
		if !known {
			counters = s.counters[unknown]
		}
		if counter := counters[verdict]; counter != nil {
			counter.Inc()
		}
	}
	return given, nil
}
