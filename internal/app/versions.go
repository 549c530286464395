package app

import (
	"context"
	"fmt"
	"strings"
)

// RedisVersion and SQLVersion say who answers. Kafka doesn't tell its version.
func (i *Installation) RedisVersion(ctx context.Context) (string, error) {
	info, err := i.redis.Info(ctx, "server").Result()
	if err != nil {
		return "", fmt.Errorf("app: %w", err)
	}
	for _, name := range []string{"valkey", "redis"} {
		for line := range strings.Lines(info) {
			if version, found := strings.CutPrefix(line, name+"_version:"); found {
				return name + "-server " + strings.TrimSpace(version), nil
			}
		}
	}
	return "of unknown version", nil
}

func (i *Installation) SQLVersion(ctx context.Context) (string, error) {
	return i.ledger.ServerVersion(ctx)
}
