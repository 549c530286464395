package kafkastock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/segmentio/kafka-go"

	"flashsale/internal/stock"
)

// Options says where Kafka is and what the installation's topics are called.
type Options struct {
	Brokers  []string // host:port, at least one
	Topics   Topics   // zero: Names(DefaultPrefix)
	ClientID string   // "" = "flashsale"

	// Timeout bounds one exchange with Kafka, 10 s by default. A context that
	// ends earlier wins.
	Timeout time.Duration

	// Partitions is how many EnsureTopics gives each topic it creates, 8 by
	// default.
	Partitions int

	// ReplicationFactor is that of the topics which EnsureTopics creates. 0 is
	// as many as there are brokers, at most 3.
	ReplicationFactor int

	// SessionTimeout is how long a Source that was killed, or cut off, keeps its
	// partitions from the group's other members. It is 6 s by default, the
	// least that a broker accepts unless it is told otherwise.
	SessionTimeout time.Duration

	// Logger gets what the Kafka client reports, at debug level. nil: nobody.
	Logger *slog.Logger
}

func (o Options) withDefaults() (Options, error) {
	if len(o.Brokers) == 0 {
		return o, errors.New("kafkastock: no broker given")
	}
	for _, broker := range o.Brokers {
		if _, _, err := net.SplitHostPort(broker); err != nil {
			return o, fmt.Errorf("kafkastock: broker %q: want host:port: %w", broker, err)
		}
	}
	if o.Partitions < 0 || o.ReplicationFactor < 0 || o.Timeout < 0 || o.SessionTimeout < 0 {
		return o, errors.New("kafkastock: partitions, replication factor and timeouts must not be negative")
	}
	if o.Topics == (Topics{}) {
		o.Topics = Names(DefaultPrefix)
	}
	if o.ClientID == "" {
		o.ClientID = "flashsale"
	}
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Second
	}
	if o.SessionTimeout == 0 {
		o.SessionTimeout = 6 * time.Second
	}
	if o.Partitions == 0 {
		o.Partitions = 8
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o, nil
}

// cluster is the connections that one publisher, source or call has to Kafka.
type cluster struct {
	Options
	client    *kafka.Client
	transport *kafka.Transport
}

// newCluster connects to nothing yet: brokers may be away.
func newCluster(o Options) (*cluster, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	transport := &kafka.Transport{
		Dial:        (&net.Dialer{Timeout: dialTimeout}).DialContext,
		DialTimeout: dialTimeout,
		IdleTimeout: time.Minute,
		ClientID:    o.ClientID,
		// The client answers for the cluster's layout from a cache, errors
		// included. This is how long a moved leader or a broker that came back
		// can go unnoticed.
		MetadataTTL:    2 * time.Second,
		MetadataTopics: []string{o.Topics.Deductions, o.Topics.Dead},
	}
	return &cluster{
		Options:   o,
		transport: transport,
		client:    &kafka.Client{Addr: kafka.TCP(o.Brokers...), Timeout: o.Timeout, Transport: transport},
	}, nil
}

const dialTimeout = 3 * time.Second

func (c *cluster) close() { c.transport.CloseIdleConnections() }

// partitions counts a topic's partitions.
func (c *cluster) partitions(ctx context.Context, topic string) (int, error) {
	response, err := c.client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{topic}})
	if err != nil {
		return 0, err
	}
	for _, t := range response.Topics {
		switch {
		case t.Name != topic:
		case errors.Is(t.Error, kafka.UnknownTopicOrPartition):
			return 0, noTopic(topic)
		case t.Error != nil:
			return 0, fmt.Errorf("topic %s: %w", topic, t.Error)
		case len(t.Partitions) > 0:
			return len(t.Partitions), nil
		}
	}
	return 0, noTopic(topic)
}

// ErrNoTopic says that Kafka answers, but has not got a topic of the
// installation. It comes wrapped together with stock.ErrUnavailable.
var ErrNoTopic = fmt.Errorf("kafkastock: topic does not exist: %w", kafka.UnknownTopicOrPartition)

func noTopic(name string) error {
	return fmt.Errorf("%w: %s (flashsale migrate creates it)", ErrNoTopic, name)
}

// bounded is ctx with the timeout of one exchange.
func (c *cluster) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, c.Timeout)
}

// failed wraps what Kafka or the way to it answered. When it was the caller
// who gave up, the error is the caller's context's.
func failed(ctx context.Context, op string, err error) error {
	if cause := ctx.Err(); cause != nil {
		return fmt.Errorf("kafkastock: %s: %w", op, cause)
	}
	return fmt.Errorf("kafkastock: %s: %w: %w", op, stock.ErrUnavailable, err)
}
