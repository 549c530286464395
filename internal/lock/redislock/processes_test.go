package redislock

import (
	"testing"

	"flashsale/internal/lock"
	"flashsale/internal/lock/locktest"
)

func TestVariantsExcludeAcrossProcesses(t *testing.T) {
	for _, variant := range variants {
		t.Run(variant.name, func(t *testing.T) {
			store := func(t *testing.T) string {
				addr := realRedis(t)
				variant.skipUnless(t, connect(t, addr))
				return addr
			}
			fenced := variant.features.Fence && !variant.features.SharesFence
			locktest.RunProcesses(t, fenced, store, func(t *testing.T, addr string) lock.Locker {
				return variant.build(t, connect(t, addr), Options{Wait: locktest.Patience})
			})
		})
	}
}
