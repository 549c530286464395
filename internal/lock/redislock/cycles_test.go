package redislock

import (
	"slices"
	"testing"

	"flashsale/internal/lock"
	"flashsale/internal/lock/locktest"
)

// Of 10,000 cycles the one fence is left, with its TTL, and nothing else.
func TestManyCyclesLeaveKeysBehind(t *testing.T) {
	addr := realRedis(t)
	client := connect(t, addr)
	cycle := func(t *testing.T, fenced bool, build func(t testing.TB) lock.Locker) {
		client.FlushAll(t.Context())
		locktest.RunManyCycles(t, locktest.Store{
			New:     func(t testing.TB, _ locktest.Setting) lock.Locker { return build(t) },
			Residue: func(t testing.TB, key string) []string { return residue(t, client, key) },
		}, "item")
		want := map[bool]int64{true: 1}[fenced]
		if keys := client.DBSize(t.Context()).Val(); keys != want {
			t.Errorf("%d keys, want %d", keys, want)
		}
	}
	for _, variant := range slices.Concat(variants, brokenVariants) {
		t.Run(variant.name, func(t *testing.T) {
			variant.skipUnless(t, client)
			cycle(t, variant.features.Fence, func(t testing.TB) lock.Locker { return variant.build(t, connect(t, addr), Options{}) })
		})
	}
	t.Run("writers", func(t *testing.T) {
		cycle(t, true, func(t testing.TB) lock.Locker { return newReadWrite(t, addr, Options{}).Writer() })
	})
	t.Run("readers", func(t *testing.T) {
		cycle(t, false, func(t testing.TB) lock.Locker { return newReadWrite(t, addr, Options{}).Reader() })
	})
	t.Run("redlock", func(t *testing.T) {
		nodes := startNodes(t, 3)
		locktest.RunManyCycles(t, locktest.Store{
			New:     func(t testing.TB, _ locktest.Setting) lock.Locker { return nodes.redlock(t, RedlockOptions{}) },
			Residue: func(t testing.TB, _ string) []string { nodes.nothingLeft(t); return nil },
		}, "item")
	})
}
