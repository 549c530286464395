package app

import (
	"io"
	"slices"

	"github.com/redis/go-redis/v9"

	"flashsale/internal/lock"
	"flashsale/internal/lock/redislock"
	"flashsale/internal/metrics"
	"flashsale/internal/redisstock"
	"flashsale/internal/sqlstock"
	"flashsale/internal/stock"
)

// variants is the one table of what a sale can be guarded by: a lock around the
// guarded counter, or a counter that needs none.
var variants = []variant{
	{name: "none"},
	{name: "local", locker: newLocal},
	{name: "setnx-bare", needs: needsConsent, locker: func(b backends) (lock.Locker, error) { return redislock.NewSetNXBare(b.redis, b.locks) }},
	{name: "setnx-expire", needs: needsConsent, locker: func(b backends) (lock.Locker, error) { return redislock.NewSetNXExpire(b.redis, b.locks) }},
	{name: "setnx-getdel", needs: needsConsent, locker: func(b backends) (lock.Locker, error) { return redislock.NewSetNXGetDel(b.redis, b.locks) }},
	{name: "setnx", locker: func(b backends) (lock.Locker, error) { return redislock.NewSetNX(b.redis, b.locks) }},
	{name: "watchdog", locker: newWatchdog},
	{name: "watchdog-cohort", locker: func(b backends) (lock.Locker, error) {
		watchdog, err := redislock.NewWatchdog(b.redis, b.locks)
		return lock.NewCohort(watchdog, lock.CohortOptions{Wait: b.config.LockWait}), err
	}},
	{name: "watchdog-combining", locker: newWatchdog, combine: true},
	{name: "fair", locker: func(b backends) (lock.Locker, error) {
		return redislock.NewFair(b.redis, redislock.FairOptions{Options: b.locks})
	}},
	{name: "function", needs: needsRealRedis, locker: func(b backends) (lock.Locker, error) { return redislock.NewFunction(b.redis, b.locks) }},
	{name: "redlock", needs: needsRedlock, locker: newRedlock},
	{name: "etcd", needs: needsEtcd, locker: newEtcd},
	{name: "zookeeper", needs: needsZooKeeper, locker: newZooKeeper},
	{name: "mysql-row", needs: needsMySQL, locker: newMySQLRow},
	{name: "atomic", combine: true, counter: func(b backends) stock.Counter { return b.store.Atomic() }},
	{name: "striped", locker: newWatchdog, inside: func(b backends, l lock.Locker) stock.Counter { return b.store.Striped(l) }},
	{name: "mysql-optimistic", counter: func(b backends) stock.Counter { return b.ledger.Optimistic() }},
	{name: "mysql-conditional", counter: func(b backends) stock.Counter { return b.ledger.Conditional() }},
}

type variant struct {
	name    string
	needs   need                                      // beyond what every installation has
	locker  func(backends) (lock.Locker, error)       // nil: no lock
	counter func(backends) stock.Counter              // nil: the guarded one
	inside  func(backends, lock.Locker) stock.Counter // the counter takes the lock by itself
	combine bool                                      // purchases that wait share a deduction, and the lock if any
}

func newWatchdog(b backends) (lock.Locker, error) { return redislock.NewWatchdog(b.redis, b.locks) }

// backends is what variants are made of.
type backends struct {
	config Config
	redis  redis.UniversalClient
	locks  redislock.Options
	store  *redisstock.Store
	ledger *sqlstock.DB
}

// Variants are the names of all variants, in the order of the table, whether or
// not an installation has what they need.
func Variants() []string { return names(func(variant) bool { return true }) }

// Offered are the names of the variants that an installation with these
// settings has everything for, in the order of the table.
func (c Config) Offered() []string {
	return names(func(v variant) bool { return v.needs.metBy(c) })
}

// Lacking are the other variants, and what each of them needs, as in "needs etcd".
func (c Config) Lacking() map[string]string {
	lacking := map[string]string{}
	for _, v := range variants {
		if !v.needs.metBy(c) {
			lacking[v.name] = "needs " + v.needs.what
		}
	}
	return lacking
}

// Broken reports whether a variant is broken on purpose, and so offered with
// consent only.
func Broken(name string) bool {
	return slices.ContainsFunc(variants, func(v variant) bool { return v.name == name && v.needs.what == needsConsent.what })
}

func names(which func(variant) bool) (list []string) {
	for _, v := range variants {
		if which(v) {
			list = append(list, v.name)
		}
	}
	return list
}

// build makes every variant that is offered, its locks observed. The closers
// are the locks'.
func build(b backends, locks *metrics.Locks) (map[string]stock.Variant, []io.Closer, error) {
	built, closers := map[string]stock.Variant{}, []io.Closer(nil)
	for _, v := range variants {
		if !v.needs.metBy(b.config) {
			continue
		}
		variant := stock.Variant{Counter: b.store.Guarded(), Combine: v.combine && !b.config.Uncombined}
		if v.counter != nil {
			variant.Counter = v.counter(b)
		}
		if v.locker != nil {
			locker, err := v.locker(b)
			if err != nil {
				return nil, closers, err
			}
			if c, ok := locker.(io.Closer); ok {
				closers = append(closers, c)
			}
			variant.Locker = locks.Observe(v.name, locker)
			if v.inside != nil {
				variant.Locker, variant.Counter = nil, v.inside(b, variant.Locker)
			}
		}
		built[v.name] = variant
	}
	return built, closers, nil
}
