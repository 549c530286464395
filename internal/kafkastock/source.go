package kafkastock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"

	"flashsale/internal/stock"
)

// ErrClosed is what a closed Source answers.
var ErrClosed = errors.New("kafkastock: source closed")

// Source is the stock.Source on Kafka: one member of the installation's
// consumer group. It joins at the first Fetch and leaves at Close. Fetch is for
// one goroutine, Commit and Bury for another: the next batch may be fetched while
// one is committed.
type Source struct {
	cluster *cluster
	dead    *Publisher

	mu     sync.Mutex
	reader *kafka.Reader
	closed bool
}

var _ stock.Source = (*Source)(nil)

// NewSource connects to nothing yet; its error is about the options alone.
func NewSource(o Options) (*Source, error) {
	dead, err := NewPublisher(o)
	if err != nil {
		return nil, err
	}
	return &Source{cluster: dead.cluster, dead: dead}, nil
}

// enough is how many bytes of values a Fetch ends at. A message may be a
// megabyte, and max of those more than there is memory.
const enough = 8 << 20

// Fetch implements stock.Source. A message that it returned comes again only
// to another member or after a rebalance, so whatever was received before an
// error or the end of ctx is returned instead of it.
func (s *Source) Fetch(ctx context.Context, max int, linger time.Duration) ([]stock.Message, error) {
	reader, err := s.join(ctx)
	if err != nil {
		return nil, err
	}
	first, err := reader.FetchMessage(ctx)
	if err != nil {
		return nil, s.failed(ctx, "fetch", err)
	}
	messages := append(make([]stock.Message, 0, max), received(first))
	lingering, cancel := context.WithTimeout(ctx, linger)
	defer cancel()
	for size := len(first.Value); len(messages) < max && size < enough; {
		next, err := reader.FetchMessage(lingering)
		if err != nil {
			break // the linger's end; an error that lasts comes again at the next call
		}
		messages = append(messages, received(next))
		size += len(next.Value)
	}
	return messages, nil
}

func received(m kafka.Message) stock.Message {
	return stock.Message{Key: string(m.Key), Value: m.Value, Partition: m.Partition, Offset: m.Offset}
}

// Commit implements stock.Source. It returns once the group's coordinator has
// stored the offsets.
func (s *Source) Commit(ctx context.Context, messages []stock.Message) error {
	if len(messages) == 0 {
		return nil
	}
	reader, err := s.join(ctx)
	if err != nil {
		return err
	}
	last := make(map[int]int64, s.cluster.Partitions)
	for _, m := range messages {
		if offset, seen := last[m.Partition]; !seen || m.Offset > offset {
			last[m.Partition] = m.Offset
		}
	}
	commits := make([]kafka.Message, 0, len(last))
	for partition, offset := range last {
		commits = append(commits, kafka.Message{Topic: s.cluster.Topics.Deductions, Partition: partition, Offset: offset})
	}
	bounded, cancel := s.cluster.bounded(ctx)
	defer cancel()
	if err := reader.CommitMessages(bounded, commits...); err != nil {
		return s.failed(ctx, "commit", err)
	}
	return nil
}

// Bury implements stock.Source. The dead letter has the message's key and
// bytes, and headers reason, topic, partition and offset.
func (s *Source) Bury(ctx context.Context, m stock.Message, reason string) error {
	return s.dead.publish(ctx, s.cluster.Topics.Dead, []stock.Message{m}, []kafka.Header{
		{Key: "reason", Value: []byte(reason)},
		{Key: "topic", Value: []byte(s.cluster.Topics.Deductions)},
		{Key: "partition", Value: strconv.AppendInt(nil, int64(m.Partition), 10)},
		{Key: "offset", Value: strconv.AppendInt(nil, m.Offset, 10)},
	})
}

// Close leaves the group, so that its partitions go to another member at once.
func (s *Source) Close() error {
	s.mu.Lock()
	reader := s.reader
	s.reader, s.closed = nil, true
	s.mu.Unlock()
	defer s.cluster.close()
	if reader == nil {
		return nil
	}
	return reader.Close()
}

// join makes the group's member at the first call. A group that subscribes to
// a topic which does not exist gets nothing, for ever and without an error;
// that is why the topic is looked for first.
func (s *Source) join(ctx context.Context) (*kafka.Reader, error) {
	s.mu.Lock()
	reader, closed := s.reader, s.closed
	s.mu.Unlock()
	if closed {
		return nil, ErrClosed
	}
	if reader != nil {
		return reader, nil
	}
	bounded, cancel := s.cluster.bounded(ctx)
	defer cancel()
	if _, err := s.cluster.partitions(bounded, s.cluster.Topics.Deductions); err != nil {
		return nil, failed(ctx, "fetch", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	if s.reader == nil {
		s.reader = kafka.NewReader(s.config())
	}
	return s.reader, nil
}

func (s *Source) config() kafka.ReaderConfig {
	log := clientLog{s.cluster.Logger}
	return kafka.ReaderConfig{
		Brokers: s.cluster.Brokers,
		Topic:   s.cluster.Topics.Deductions,
		GroupID: s.cluster.Topics.Group,
		Dialer:  &kafka.Dialer{ClientID: s.cluster.ClientID, Timeout: dialTimeout, DualStack: true},

		StartOffset:   kafka.FirstOffset, // a group that lost its offsets starts over: the ledger knows what it has
		QueueCapacity: 2000,
		MinBytes:      1,
		MaxBytes:      8 << 20,
		MaxWait:       500 * time.Millisecond, // less makes the client report timeouts that are none; a message is passed on at once all the same

		SessionTimeout:    s.cluster.SessionTimeout,
		HeartbeatInterval: s.cluster.SessionTimeout / 4,
		RebalanceTimeout:  10 * time.Second,
		JoinGroupBackoff:  200 * time.Millisecond, // a fresh broker's first join fails until its coordinator is up

		// Partitions that are added later would otherwise be read by nobody.
		WatchPartitionChanges:  true,
		PartitionWatchInterval: 5 * time.Second,

		ErrorLogger: log,
	}
}

func (s *Source) failed(ctx context.Context, op string, err error) error {
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return ErrClosed
	}
	return failed(ctx, op, err)
}

// clientLog passes kafka-go's own reports on. They are at debug level since it
// repeats by itself what failed, and reports that as an error each time.
type clientLog struct{ *slog.Logger }

func (l clientLog) Printf(format string, args ...any) {
	if l.Enabled(context.Background(), slog.LevelDebug) {
		l.Debug("kafka client", "report", fmt.Sprintf(format, args...))
	}
}
