package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"flashsale/internal/kafkastock"
	"flashsale/internal/sqlstock"
)

// startupTimeout bounds what a start waits for servers that hang.
const startupTimeout = 3 * time.Second

// dependency is a server that a program looks at when it starts.
type dependency struct {
	name  string
	check func(context.Context) error
}

// lockServers are those that hold nothing but locks, each by the setting that
// names it. That something listens there is all that is asked.
func lockServers(cfg Config) (found []dependency) {
	for _, s := range []struct {
		setting string
		addrs   []string
	}{
		{"FLASHSALE_REDLOCK_ADDRS", cfg.RedlockAddrs},
		{"FLASHSALE_ETCD_ENDPOINTS", cfg.EtcdEndpoints},
		{"FLASHSALE_ZOOKEEPER_ADDRS", cfg.ZooKeeperAddrs},
	} {
		for _, addr := range s.addrs {
			if at, err := redis.ParseURL(addr); err == nil { // a node of Redlock; it may hold a password, which must not be logged
				addr = at.Addr
			}
			found = append(found, dependency{s.setting + "=" + addr, func(ctx context.Context) error {
				conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
				if err != nil {
					return err
				}
				return conn.Close()
			}})
		}
	}
	return found
}

// look asks every dependency at once. One that is away is logged and waited for
// later: it may come back at any time, and starts in any order must work. One
// that answers but isn't made for this program is an error: nothing but a
// person's doing heals that, and serving on would only hide it.
func look(ctx context.Context, logger *slog.Logger, dependencies ...dependency) error {
	bounded, cancel := context.WithTimeout(ctx, startupTimeout)
	defer cancel()
	errs := make([]error, len(dependencies))
	var wg sync.WaitGroup
	for i, d := range dependencies {
		wg.Go(func() { errs[i] = d.check(bounded) })
	}
	wg.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var unfit []error
	for i, d := range dependencies {
		switch err := errs[i]; {
		case err == nil:
		case errors.Is(err, sqlstock.ErrSchema):
			unfit = append(unfit, fmt.Errorf("app: %w", err))
		case errors.Is(err, kafkastock.ErrNoTopic):
			unfit = append(unfit, fmt.Errorf("app: Kafka lacks a topic: run `flashsale migrate`: %w", err))
		default:
			logger.Warn("a server is away, going on without it", "server", d.name, "error", err)
		}
	}
	return errors.Join(unfit...)
}
