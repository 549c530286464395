package redislock

import (
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"flashsale/internal/lock"
	"flashsale/internal/lock/locktest"
)

// variant is a lock of this package, with what it offers.
type variant struct {
	name     string
	features locktest.Features
	build    func(testing.TB, *redis.Client, Options) lock.Locker
	runsOn   func(testing.TB, *redis.Client) bool // nil: on every Redis
}

func (v variant) skipUnless(t testing.TB, client *redis.Client) {
	if v.runsOn != nil && !v.runsOn(t, client) {
		t.Skip("this server can't do it")
	}
}

// variants is every lock that is meant to be used.
var variants = []variant{
	{"setnx", locktest.Features{Excludes: true, AcrossProcesses: true, Fence: true, Expires: true}, buildSetNX, nil},
	{"function", locktest.Features{Excludes: true, AcrossProcesses: true, Fence: true, Expires: true}, buildFunction, hasFunctions},
	{"watchdog", locktest.Features{Excludes: true, AcrossProcesses: true, Fence: true, Expires: true, Extends: true}, buildWatchdog, nil},
	{"watchdog-cohort", locktest.Features{Excludes: true, AcrossProcesses: true, Fence: true, SharesFence: true, Expires: true, Extends: true}, buildCohort, nil},
	{"fair", locktest.Features{Excludes: true, AcrossProcesses: true, Fence: true, Expires: true, Extends: true}, buildFair, nil},
}

// brokenVariants conform too, as long as nobody crashes: that is why they are
// met with. Their holders are told nothing.
var brokenVariants = []variant{
	{"setnx-bare", locktest.Features{Excludes: true, AcrossProcesses: true}, buildBare, nil},
	{"setnx-expire", locktest.Features{Excludes: true, AcrossProcesses: true}, buildExpire, nil},
	{"setnx-getdel", locktest.Features{Excludes: true, AcrossProcesses: true}, buildGetDel, nil},
}

func TestVariantsConform(t *testing.T) {
	servers := []struct {
		name string
		addr func(testing.TB) string
	}{{"miniredis", miniRedis}, {"redis-server", realRedis}}
	for _, server := range servers {
		for _, variant := range slices.Concat(variants, brokenVariants) {
			t.Run(server.name+"/"+variant.name, func(t *testing.T) {
				addr := server.addr(t)
				variant.skipUnless(t, connect(t, addr))
				conforms(t, variant, addr)
			})
		}
	}
}

// conforms runs the suite on a server of the test's own.
func conforms(t *testing.T, variant variant, addr string) {
	locktest.Run(t, variant.features, func(t *testing.T) locktest.Store {
		client := connect(t, addr)
		if err := client.FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		return locktest.Store{
			New: func(t testing.TB, s locktest.Setting) lock.Locker {
				return variant.build(t, connect(t, addr), Options{TTL: s.TTL, Wait: s.Wait, Drift: s.Drift})
			},
			Steal: func(t testing.TB, key string) {
				lockKey, _ := defaultKeys(key)
				if n, err := client.Del(t.Context(), lockKey).Result(); n != 1 || err != nil {
					t.Errorf("steal: %d deleted, %v", n, err)
				}
			},
			Residue:   func(t testing.TB, key string) []string { return residue(t, client, key) },
			Overtakes: strings.Contains(t.Name(), "/miniredis/"),
		}
	})
}
