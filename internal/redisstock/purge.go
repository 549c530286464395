package redisstock

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"flashsale/internal/rediskey"
)

// Purge deletes every key of this installation, and no other: sales, locks,
// fences and outbox. It is for a demo to clean up after itself, and stops for
// nothing that still runs.
func (s *Store) Purge(ctx context.Context) error {
	purge := func(ctx context.Context, node *redis.Client) error {
		for shard := range rediskey.Shards {
			if err := purgeShard(ctx, node, s.keys.Pattern(shard)); err != nil {
				return err
			}
		}
		return nil
	}
	switch client := s.client.(type) {
	case *redis.Client:
		return purge(ctx, client)
	case *redis.ClusterClient:
		return client.ForEachMaster(ctx, purge)
	default:
		return fmt.Errorf("redisstock: purge: can't scan with a %T", client)
	}
}

// purgeShard deletes what matches in batches; the keys of a shard share a slot.
func purgeShard(ctx context.Context, node *redis.Client, pattern string) error {
	for cursor := uint64(0); ; {
		keys, next, err := node.Scan(ctx, cursor, pattern, scanCount).Result()
		if err != nil {
			return unavailable(err)
		}
		if len(keys) > 0 {
			if err := node.Unlink(ctx, keys...).Err(); err != nil {
				return unavailable(err)
			}
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}
