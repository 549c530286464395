// Package metrics counts and times what the ports do, as decorators around
// them, so that neither the domain nor an adapter knows of Prometheus. Labels
// are variant and outcome: a sale's name would make series without end.
package metrics

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics are the metrics of one process.
type Metrics struct {
	registry *prometheus.Registry

	purchases       *prometheus.CounterVec   // variant, outcome
	purchaseSeconds *prometheus.HistogramVec // variant, outcome
	lockWait        *prometheus.HistogramVec // variant
	lockHold        *prometheus.HistogramVec // variant
	acquisitions    *prometheus.CounterVec   // variant, outcome
	releaseFailures *prometheus.CounterVec   // variant
	lockLost        *prometheus.CounterVec   // variant
	batchSize       prometheus.Histogram
}

// seconds are the bounds of every histogram of times: fine around the
// thresholds that alerts use (0.5 s of waiting, 1 s of holding).
var seconds = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, .75, 1, 2.5, 5, 10}

// New returns metrics in a registry of their own, with those of the Go runtime
// and the process.
func New() *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		purchases: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "flashsale_purchases_total", Help: "Purchase requests by what became of them.",
		}, []string{"variant", "outcome"}),
		purchaseSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "flashsale_purchase_seconds", Help: "Time from request to answer.", Buckets: seconds,
		}, []string{"variant", "outcome"}),
		lockWait: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "flashsale_lock_wait_seconds", Help: "Time from asking for a lock to having it or giving up.", Buckets: seconds,
		}, []string{"variant"}),
		lockHold: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "flashsale_lock_hold_seconds", Help: "Time from having a lock to having released it.", Buckets: seconds,
		}, []string{"variant"}),
		acquisitions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "flashsale_lock_acquisitions_total", Help: "Attempts to acquire a lock by how they ended.",
		}, []string{"variant", "outcome"}),
		releaseFailures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "flashsale_release_failures_total", Help: "Releases that failed: the lock may have stayed until its TTL had passed.",
		}, []string{"variant"}),
		lockLost: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "flashsale_lock_lost_total", Help: "Leases that had ended before they were released.",
		}, []string{"variant"}),
		batchSize: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "flashsale_syncer_batch_size", Help: "Events that the syncer took at a time.", Buckets: prometheus.ExponentialBuckets(1, 2, 12),
		}),
	}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Handler serves the metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry})
}
