// Package metrics counts and times what the ports do, as decorators around
// them, so that neither the domain nor an adapter knows of Prometheus. Labels
// are variant and outcome, and their values are fixed beforehand: a sale's name,
// or whatever else comes in from outside, would make series without end.
package metrics

import (
	"net/http"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics are the metrics of one process.
type Metrics struct {
	registry *prometheus.Registry
	variants []string

	purchases       *prometheus.CounterVec   // variant, outcome
	purchaseSeconds *prometheus.HistogramVec // variant, outcome
	lockWait        *prometheus.HistogramVec // variant
	lockHold        *prometheus.HistogramVec // variant
	acquisitions    *prometheus.CounterVec   // variant, outcome
	releaseFailures *prometheus.CounterVec   // variant
	lockLost        *prometheus.CounterVec   // variant
	batchSize       prometheus.Histogram
	settled         *prometheus.CounterVec // variant, outcome
	deadLetters     prometheus.Counter
}

// unknown is the label of a variant or outcome that is none of those which were
// given: of a request for a sale that nobody has, or of another program's event.
const unknown = "unknown"

func withUnknown(labels []string) []string { return append(slices.Clip(labels), unknown) }

// seconds are the bounds of every histogram of times. The thresholds of the
// alerts are among them (0.5 s of waiting, 1 s of holding and of answering), so
// that whether a percentile is above one is counted, not interpolated.
var seconds = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, .75, 1, 2.5, 5, 10}

// New returns metrics in a registry of their own, with those of the Go runtime
// and the process. variants are all that a sale can have.
func New(variants []string) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		variants: variants,
		purchases: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "flashsale_purchases_total", Help: "Purchase requests by what became of them.",
		}, []string{"variant", "outcome"}),
		purchaseSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "flashsale_purchase_seconds", Help: "Time from the request, once read, to what became of it.", Buckets: seconds,
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
			Name: "flashsale_syncer_batch_size", Help: "Messages that the syncer took at a time.", Buckets: prometheus.ExponentialBuckets(1, 2, 12),
		}),
		settled: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "flashsale_settled_total", Help: "Accepted purchases by what the ledger made of them; rejected ones had been oversold.",
		}, []string{"variant", "outcome"}),
		deadLetters: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "flashsale_dead_letters_total", Help: "Messages that can never be settled, put into the dead letter topic.",
		}),
	}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Handler serves the metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry})
}
