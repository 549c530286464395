package metrics

import (
	"context"
	"time"

	"flashsale/internal/stock"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
)

// scrapeTimeout bounds what a scrape asks of a server. One that is away leaves
// its metrics out: a zero would say that there is no backlog.
const scrapeTimeout = 2 * time.Second

// Outbox reports what waits in the outbox's shards, all together, as it is when scraped.
func (m *Metrics) Outbox(outbox stock.Outbox, shards int) {
	m.registry.MustRegister(&outboxCollector{outbox, shards})
}

var (
	entriesDesc = prometheus.NewDesc("flashsale_outbox_entries", "Entries in the outbox, not yet acknowledged by Kafka.", nil, nil)
	oldestDesc  = prometheus.NewDesc("flashsale_relay_oldest_seconds", "Age of the oldest entry in the outbox; 0 when there is none.", nil, nil)
	lagDesc     = prometheus.NewDesc("flashsale_syncer_lag", "Messages in Kafka that no syncer has committed.", nil, nil)
)

type outboxCollector struct {
	outbox stock.Outbox
	shards int
}

func (c *outboxCollector) Describe(ch chan<- *prometheus.Desc) { ch <- entriesDesc; ch <- oldestDesc }

func (c *outboxCollector) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	entries, oldest := make([]int64, c.shards), make([]time.Time, c.shards)
	group, ctx := errgroup.WithContext(ctx)
	for shard := range c.shards {
		group.Go(func() (err error) {
			entries[shard], oldest[shard], err = c.outbox.Depth(ctx, shard)
			return err
		})
	}
	if group.Wait() != nil {
		return
	}
	var sum int64
	var age time.Duration
	for shard := range c.shards {
		sum += entries[shard]
		if !oldest[shard].IsZero() {
			age = max(age, time.Since(oldest[shard]))
		}
	}
	ch <- prometheus.MustNewConstMetric(entriesDesc, prometheus.GaugeValue, float64(sum))
	ch <- prometheus.MustNewConstMetric(oldestDesc, prometheus.GaugeValue, age.Seconds())
}

// Syncer reports lag when scraped. The function that it returns counts a batch
// of so many messages.
func (m *Metrics) Syncer(lag func(context.Context) (int64, error)) (batch func(messages int)) {
	m.registry.MustRegister(m.batchSize, lagCollector(lag))
	return func(messages int) { m.batchSize.Observe(float64(messages)) }
}

type lagCollector func(context.Context) (int64, error)

func (lagCollector) Describe(ch chan<- *prometheus.Desc) { ch <- lagDesc }

func (lag lagCollector) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	if n, err := lag(ctx); err == nil {
		ch <- prometheus.MustNewConstMetric(lagDesc, prometheus.GaugeValue, float64(n))
	}
}
