package app

import (
	"io"

	"github.com/redis/go-redis/v9"

	"flashsale/internal/lock"
	"flashsale/internal/lock/redislock"
	"flashsale/internal/metrics"
	"flashsale/internal/redisstock"
	"flashsale/internal/stock"
)

// variants is the one table of what a sale can be guarded by: a lock around the
// guarded counter, or a counter that needs none.
var variants = []struct {
	name   string
	locker func(redis.UniversalClient, redislock.Options) (lock.Locker, error) // nil: no lock
	atomic bool
}{
	{name: "none"},
	{name: "setnx", locker: func(c redis.UniversalClient, o redislock.Options) (lock.Locker, error) {
		return redislock.NewSetNX(c, o)
	}},
	{name: "watchdog", locker: func(c redis.UniversalClient, o redislock.Options) (lock.Locker, error) {
		return redislock.NewWatchdog(c, o)
	}},
	{name: "atomic", atomic: true},
}

// Variants are the names of the variants, in the order of the table.
func Variants() []string {
	names := make([]string, len(variants))
	for i, v := range variants {
		names[i] = v.name
	}
	return names
}

// build makes every variant, its locks observed. The closers are the locks'.
func build(client redis.UniversalClient, store *redisstock.Store, o redislock.Options, locks *metrics.Locks) (map[string]stock.Variant, []io.Closer, error) {
	built, closers := map[string]stock.Variant{}, []io.Closer(nil)
	for _, v := range variants {
		variant := stock.Variant{Counter: store.Guarded()}
		if v.atomic {
			variant.Counter = store.Atomic()
		}
		if v.locker != nil {
			locker, err := v.locker(client, o)
			if err != nil {
				return nil, closers, err
			}
			if c, ok := locker.(io.Closer); ok {
				closers = append(closers, c)
			}
			variant.Locker = locks.Observe(v.name, locker)
		}
		built[v.name] = variant
	}
	return built, closers, nil
}
