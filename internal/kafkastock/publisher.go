package kafkastock

import (
	"context"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"
	"golang.org/x/sync/errgroup"

	"flashsale/internal/stock"
)

// A produce request is kept far below what a broker accepts by default
// (1,048,588 bytes a batch), so that no batch of ours is ever cut in two by
// anybody else.
const (
	maxBatchMessages = 1000
	maxBatchBytes    = 512 << 10
)

// Publisher is the stock.Publisher on Kafka. It is safe for concurrent use.
//
// It speaks produce requests itself and leaves kafka-go's Writer alone: the
// Writer collects for a while, goes on sending after its caller has given up,
// and sends later batches of a partition although an earlier one failed. Here
// a call is over when it returns, and after a failure nothing later of the
// same partition is sent.
type Publisher struct {
	cluster *cluster
	balance kafka.Hash
}

var _ stock.Publisher = (*Publisher)(nil)

// NewPublisher connects to nothing yet; its error is about the options alone.
func NewPublisher(o Options) (*Publisher, error) {
	c, err := newCluster(o)
	if err != nil {
		return nil, err
	}
	return &Publisher{cluster: c}, nil
}

// Publish implements stock.Publisher. Its error wraps stock.ErrUnavailable, or
// is the context's.
func (p *Publisher) Publish(ctx context.Context, messages []stock.Message) error {
	return p.publish(ctx, p.cluster.Topics.Deductions, messages, nil)
}

// Close gives the connections back.
func (p *Publisher) Close() error {
	p.cluster.close()
	return nil
}

func (p *Publisher) publish(ctx context.Context, topic string, messages []stock.Message, headers []kafka.Header) error {
	if len(messages) == 0 {
		return nil
	}
	bounded, cancel := p.cluster.bounded(ctx)
	defer cancel()
	count, err := p.cluster.partitions(bounded, topic)
	if err != nil {
		return failed(ctx, "publish", err)
	}
	var partitions errgroup.Group // without its context: one partition's failure is not another's
	for partition, records := range p.split(messages, headers, count) {
		partitions.Go(func() error { return p.produce(bounded, topic, partition, records) })
	}
	if err := partitions.Wait(); err != nil {
		return failed(ctx, "publish", err)
	}
	return nil
}

// split sorts messages into the partitions of their keys, in order.
func (p *Publisher) split(messages []stock.Message, headers []kafka.Header, count int) map[int][]kafka.Record {
	all := make([]int, count)
	for i := range all {
		all[i] = i
	}
	now := time.Now()
	of := make(map[string]int, 1) // a call's keys are few: the sales of one shard
	records := make(map[int][]kafka.Record, count)
	for _, m := range messages {
		key := []byte(m.Key)
		partition, known := of[m.Key]
		if !known {
			partition = p.balance.Balance(kafka.Message{Key: key}, all...)
			of[m.Key] = partition
		}
		records[partition] = append(records[partition], kafka.Record{
			Time: now, Key: kafka.NewBytes(key), Value: kafka.NewBytes(m.Value), Headers: headers,
		})
	}
	return records
}

// produce sends one partition's records, a batch after the other. A batch is
// stored as a whole or not at all.
func (p *Publisher) produce(ctx context.Context, topic string, partition int, records []kafka.Record) error {
	for len(records) > 0 {
		n := batchLen(records)
		response, err := p.cluster.client.Produce(ctx, &kafka.ProduceRequest{
			Topic: topic, Partition: partition, RequiredAcks: kafka.RequireAll,
			Compression: kafka.Lz4, Records: kafka.NewRecordReader(records[:n]...),
		})
		if err == nil {
			err = response.Error
		}
		if err != nil {
			return fmt.Errorf("topic %s, partition %d, %d messages: %w", topic, partition, len(records), err)
		}
		records = records[n:]
	}
	return nil
}

// batchLen is how many of records, at least one, go into the next batch.
func batchLen(records []kafka.Record) int {
	size := 0
	for i, r := range records {
		size += length(r.Key) + length(r.Value)
		if i > 0 && (i == maxBatchMessages || size > maxBatchBytes) {
			return i
		}
	}
	return len(records)
}

// length reads nil, which is what kafka-go makes of no bytes.
func length(b kafka.Bytes) int {
	if b == nil {
		return 0
	}
	return b.Len()
}
