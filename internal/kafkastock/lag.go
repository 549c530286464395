package kafkastock

import (
	"context"
	"errors"

	"github.com/segmentio/kafka-go"
)

// Lag is the number of messages that the group has not committed yet, over all
// partitions.
func (s *Source) Lag(ctx context.Context) (int64, error) {
	bounded, cancel := s.cluster.bounded(ctx)
	defer cancel()
	lag, err := s.cluster.lag(bounded)
	if err != nil {
		return 0, failed(ctx, "lag", err)
	}
	return lag, nil
}

func (c *cluster) lag(ctx context.Context) (int64, error) {
	topic := c.Topics.Deductions
	count, err := c.partitions(ctx, topic)
	if err != nil {
		return 0, err
	}
	partitions := make([]int, count)
	bounds := make([]kafka.OffsetRequest, 0, 2*count)
	for i := range partitions {
		partitions[i] = i
		bounds = append(bounds, kafka.FirstOffsetOf(i), kafka.LastOffsetOf(i))
	}
	committed, err := c.client.OffsetFetch(ctx, &kafka.OffsetFetchRequest{
		GroupID: c.Topics.Group, Topics: map[string][]int{topic: partitions},
	})
	if err == nil {
		err = committed.Error
	}
	if err != nil {
		return 0, err
	}
	offsets, err := c.client.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{topic: bounds}})
	if err != nil {
		return 0, err
	}
	done := make(map[int]int64, count)
	var failures []error
	for _, p := range committed.Topics[topic] {
		done[p.Partition] = p.CommittedOffset // -1: none yet
		failures = append(failures, p.Error)
	}
	var lag int64
	for _, p := range offsets.Topics[topic] {
		lag += max(0, p.LastOffset-max(p.FirstOffset, done[p.Partition]))
		failures = append(failures, p.Error)
	}
	return lag, errors.Join(failures...)
}
