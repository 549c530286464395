package metrics

import (
	"log/slog"
	"time"

	"flashsale/internal/lock"

	"github.com/prometheus/client_golang/prometheus"
)

// Locks observes the locks of the sales. It is made once a process.
func (m *Metrics) Locks(logger *slog.Logger) *Locks {
	m.registry.MustRegister(m.lockWait, m.lockHold, m.acquisitions, m.releaseFailures, m.lockLost)
	return &Locks{m, logger}
}

// Locks decorates lockers.
type Locks struct {
	metrics *Metrics
	logger  *slog.Logger
}

// Observe returns locker with its waits, holds and failures counted under
// variant. What went wrong at a release is logged as well: it is no purchase's
// failure, so nobody else would say it.
func (l *Locks) Observe(variant string, locker lock.Locker) lock.Locker {
	var (
		wait, hold       = l.metrics.lockWait.WithLabelValues(variant), l.metrics.lockHold.WithLabelValues(variant)
		failures, losses = l.metrics.releaseFailures.WithLabelValues(variant), l.metrics.lockLost.WithLabelValues(variant)
		acquisitions     = make(map[lock.Outcome]prometheus.Counter)
	)
	for _, outcome := range acquireOutcomes {
		acquisitions[outcome] = l.metrics.acquisitions.WithLabelValues(variant, string(outcome))
	}
	return lock.Observe(locker, lock.Observer{
		Acquired: func(_ string, waited time.Duration, outcome lock.Outcome, _ error) {
			wait.Observe(waited.Seconds())
			acquisitions[outcome].Inc()
		},
		Released: func(_ string, held time.Duration) { hold.Observe(held.Seconds()) },
		ReleaseFailed: func(key string, err error) {
			failures.Inc()
			l.logger.Warn("a lock was not released, its TTL ends it", "variant", variant, "key", key, "error", err)
		},
		Lost: func(key string) {
			losses.Inc()
			l.logger.Warn("a lease ended before its holder was done", "variant", variant, "key", key)
		},
	})
}

// acquireOutcomes are all there are. Each has its series from the beginning: a
// rate would miss the first failure of one that begins with it.
var acquireOutcomes = []lock.Outcome{
	lock.OutcomeAcquired, lock.OutcomeNotAcquired, lock.OutcomeUnavailable, lock.OutcomeCancelled, lock.OutcomeFailed,
}
