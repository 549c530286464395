package kafkastock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/segmentio/kafka-go"
)

const (
	retention = 30 * 24 * time.Hour // of deductions: how long a syncer may be away

	// deadBytes is the largest dead letter: an event at the broker's default
	// limit must still fit with its headers, or it could never be passed.
	deadBytes = 2 << 20
)

// EnsureTopics creates the topics that are missing and leaves those that exist
// as they are. It returns once every partition can be
// written to.
func EnsureTopics(ctx context.Context, o Options) error {
	_, err := CreateTopics(ctx, o)
	return err
}

// CreateTopics is EnsureTopics that names the topics which it created.
func CreateTopics(ctx context.Context, o Options) (created []string, err error) {
	c, err := newCluster(o)
	if err != nil {
		return nil, err
	}
	defer c.close()
	bounded, cancel := c.bounded(ctx)
	defer cancel()
	if created, err = c.createTopics(bounded); err != nil {
		return nil, failed(ctx, "create topics", err)
	}
	return created, nil
}

func (c *cluster) createTopics(ctx context.Context) (created []string, err error) {
	replicas, err := c.replicas(ctx)
	if err != nil {
		return nil, err
	}
	minInSync := "1"
	if replicas >= 3 {
		minInSync = "2" // an acknowledgement then outlives the loss of any one broker
	}
	topic := func(name string, configs ...kafka.ConfigEntry) kafka.TopicConfig {
		return kafka.TopicConfig{
			Topic: name, NumPartitions: c.Partitions, ReplicationFactor: replicas,
			ConfigEntries: append(configs,
				kafka.ConfigEntry{ConfigName: "min.insync.replicas", ConfigValue: minInSync},
				kafka.ConfigEntry{ConfigName: "cleanup.policy", ConfigValue: "delete"}),
		}
	}
	response, err := c.client.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{
		topic(c.Topics.Deductions,
			kafka.ConfigEntry{ConfigName: "retention.ms", ConfigValue: strconv.FormatInt(retention.Milliseconds(), 10)}),
		topic(c.Topics.Dead,
			kafka.ConfigEntry{ConfigName: "retention.ms", ConfigValue: "-1"}, // until somebody has looked
			kafka.ConfigEntry{ConfigName: "max.message.bytes", ConfigValue: strconv.Itoa(deadBytes)}),
	}})
	if err != nil {
		return nil, err
	}
	for name, err := range response.Errors {
		switch {
		case err == nil:
			created = append(created, name)
		case !errors.Is(err, kafka.TopicAlreadyExists):
			return nil, fmt.Errorf("topic %s: %w", name, err)
		}
	}
	slices.Sort(created)
	return created, c.awaitLeaders(ctx)
}

func (c *cluster) replicas(ctx context.Context) (int, error) {
	if c.ReplicationFactor > 0 {
		return c.ReplicationFactor, nil
	}
	response, err := c.client.Metadata(ctx, &kafka.MetadataRequest{})
	if err != nil {
		return 0, err
	}
	return min(max(len(response.Brokers), 1), 3), nil
}

// awaitLeaders polls, since nothing tells when a new topic can be written to.
func (c *cluster) awaitLeaders(ctx context.Context) error {
	for {
		err := c.leaders(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// leaders asks each partition's leader for an offset: a broker is named as
// leader a little before it knows of that itself.
func (c *cluster) leaders(ctx context.Context) error {
	fresh, err := newCluster(c.Options) // the other's answers are cached
	if err != nil {
		return err
	}
	defer fresh.close()
	requests := make(map[string][]kafka.OffsetRequest, 2)
	for _, topic := range []string{c.Topics.Deductions, c.Topics.Dead} {
		count, err := fresh.partitions(ctx, topic)
		if err != nil {
			return err
		}
		for i := range count {
			requests[topic] = append(requests[topic], kafka.LastOffsetOf(i))
		}
	}
	response, err := fresh.client.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: requests})
	if err != nil {
		return err
	}
	for topic, partitions := range response.Topics {
		for _, p := range partitions {
			if p.Error != nil {
				return fmt.Errorf("topic %s, partition %d: %w", topic, p.Partition, p.Error)
			}
		}
	}
	return nil
}

// DeleteTopics removes the topics with everything in them, and the group's
// offsets; what doesn't exist is no error. The group must have no member left.
func DeleteTopics(ctx context.Context, o Options) error {
	c, err := newCluster(o)
	if err != nil {
		return err
	}
	defer c.close()
	bounded, cancel := c.bounded(ctx)
	defer cancel()
	if err := c.deleteTopics(bounded); err != nil {
		return failed(ctx, "delete topics", err)
	}
	return nil
}

func (c *cluster) deleteTopics(ctx context.Context) error {
	topics, err := c.client.DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: []string{c.Topics.Deductions, c.Topics.Dead}})
	if err != nil {
		return err
	}
	for name, err := range topics.Errors {
		if err != nil && !errors.Is(err, kafka.UnknownTopicOrPartition) {
			return fmt.Errorf("topic %s: %w", name, err)
		}
	}
	groups, err := c.client.DeleteGroups(ctx, &kafka.DeleteGroupsRequest{GroupIDs: []string{c.Topics.Group}})
	if err != nil {
		return err
	}
	for name, err := range groups.Errors {
		if err != nil && !errors.Is(err, kafka.GroupIdNotFound) {
			return fmt.Errorf("group %s: %w", name, err)
		}
	}
	return nil
}

// Ping says whether a broker answers and both topics exist.
func Ping(ctx context.Context, o Options) error {
	c, err := newCluster(o) // new connections: the client's cache would say yes for a while
	if err != nil {
		return err
	}
	defer c.close()
	bounded, cancel := c.bounded(ctx)
	defer cancel()
	for _, topic := range []string{c.Topics.Deductions, c.Topics.Dead} {
		if _, err := c.partitions(bounded, topic); err != nil {
			return failed(ctx, "ping", err)
		}
	}
	return nil
}
