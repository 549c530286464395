package redislock

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"flashsale/internal/lock"
	"flashsale/internal/lock/locktest"
)

const contestTTL = time.Second

func TestVariantsExcludeAcrossProcesses(t *testing.T) {
	for _, variant := range variants {
		t.Run(variant.name, func(t *testing.T) {
			variant.fight(contestTTL, locktest.Processes{Fenced: variant.features.Fence && !variant.features.SharesFence}).Run(t)
		})
	}
}

// Without an expiry nobody gets what the killed process held. With one that isn't
// extended, and a release that doesn't ask whose the lock is, work longer than the
// TTL has company.
func TestBrokenVariantsFailAcrossProcesses(t *testing.T) {
	const ttl, work = 20 * time.Millisecond, 50 * time.Millisecond
	for _, variant := range brokenVariants {
		t.Run(variant.name, func(t *testing.T) {
			if variant.name == "setnx-bare" {
				variant.fight(contestTTL, locktest.Processes{Broken: locktest.Stuck}).Run(t)
				return
			}
			variant.fight(ttl, locktest.Processes{Broken: locktest.Doubled, Work: work}).Run(t)
		})
	}
}

// fight is one for the lock of a variant, on a Redis of its own.
func (v variant) fight(ttl time.Duration, p locktest.Processes) locktest.Processes {
	p.TTL = ttl
	p.Store = func(t *testing.T) string {
		addr := realRedis(t)
		v.skipUnless(t, connect(t, addr))
		return addr
	}
	p.Open = func(t *testing.T, addr string) lock.Locker {
		return v.build(t, connect(t, addr), Options{TTL: ttl, Wait: locktest.Patience})
	}
	return p
}

func TestReadersAndWritersExcludeAcrossProcesses(t *testing.T) {
	locktest.Processes{
		Fenced: true, TTL: contestTTL, Store: func(t *testing.T) string { return realRedis(t) },
		Open: func(t *testing.T, addr string) lock.Locker {
			return newReadWrite(t, addr, Options{TTL: contestTTL, Wait: locktest.Patience}).Writer()
		},
		Reader: func(l lock.Locker) lock.Locker { return l.(writers).Reader() },
	}.Run(t)
}

func TestRedlockExcludesAcrossProcesses(t *testing.T) {
	locktest.Processes{
		TTL: contestTTL,
		Store: func(t *testing.T) string {
			var addrs []string
			for _, node := range startNodes(t, 5) {
				addrs = append(addrs, node.Addr())
			}
			return strings.Join(addrs, ",")
		},
		Open: func(t *testing.T, addrs string) lock.Locker {
			var clients []redis.UniversalClient
			for addr := range strings.SplitSeq(addrs, ",") {
				clients = append(clients, connect(t, addr))
			}
			return buildRedlock(t, clients, RedlockOptions{Options: Options{TTL: contestTTL, Wait: locktest.Patience}, NodeTimeout: contestTTL / 2})
		},
	}.Run(t)
}
