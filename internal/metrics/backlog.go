package metrics

import (
	"context"
	"time"

	"flashsale/internal/stock"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
)

var (
	entriesDesc = prometheus.NewDesc("flashsale_outbox_entries", "Entries in the outbox, not yet acknowledged by Kafka; absent while Redis does not answer.", nil, nil)
	oldestDesc  = prometheus.NewDesc("flashsale_relay_oldest_seconds", "Age of the oldest entry in the outbox; 0 when there is none, absent while Redis does not answer.", nil, nil)
	lagDesc     = prometheus.NewDesc("flashsale_syncer_lag", "Messages in Kafka that no syncer has committed; absent while Kafka does not answer.", nil, nil)
)

// Outbox reports what waits in the outbox's shards, all together, as it is when
// scraped. Every process that shares the outbox reports the same.
func (m *Metrics) Outbox(outbox stock.Outbox, shards int) {
	m.registry.MustRegister(&outboxCollector{question[backlog]{ask: func(ctx context.Context) (backlog, error) {
		return depth(ctx, outbox, shards)
	}}})
}

// backlog is what an outbox holds; the age is that of the oldest entry.
type backlog struct {
	entries int64
	age     time.Duration
}

func depth(ctx context.Context, outbox stock.Outbox, shards int) (sum backlog, err error) {
	entries, oldest := make([]int64, shards), make([]time.Time, shards)
	group, ctx := errgroup.WithContext(ctx)
	for shard := range shards {
		group.Go(func() (err error) {
			entries[shard], oldest[shard], err = outbox.Depth(ctx, shard)
			return err
		})
	}
	err = group.Wait()
	for shard := range shards {
		sum.entries += entries[shard]
		if !oldest[shard].IsZero() {
			sum.age = max(sum.age, time.Since(oldest[shard]))
		}
	}
	return sum, err
}

type outboxCollector struct{ depth question[backlog] }

func (c *outboxCollector) Describe(ch chan<- *prometheus.Desc) { ch <- entriesDesc; ch <- oldestDesc }

func (c *outboxCollector) Collect(ch chan<- prometheus.Metric) {
	if waiting, known := c.depth.answer(); known {
		ch <- prometheus.MustNewConstMetric(entriesDesc, prometheus.GaugeValue, float64(waiting.entries))
		ch <- prometheus.MustNewConstMetric(oldestDesc, prometheus.GaugeValue, waiting.age.Seconds())
	}
}

// Lag reports how far the syncers are behind, as it is when scraped. Every
// process of the group reports the same.
func (m *Metrics) Lag(lag func(context.Context) (int64, error)) {
	m.registry.MustRegister(&lagCollector{question[int64]{ask: lag}})
}

type lagCollector struct{ lag question[int64] }

func (c *lagCollector) Describe(ch chan<- *prometheus.Desc) { ch <- lagDesc }

func (c *lagCollector) Collect(ch chan<- prometheus.Metric) {
	if lag, known := c.lag.answer(); known {
		ch <- prometheus.MustNewConstMetric(lagDesc, prometheus.GaugeValue, float64(lag))
	}
}
