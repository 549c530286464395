package zklock

import (
	"strings"
	"testing"
	"time"

	"flashsale/internal/lock"
	"flashsale/internal/lock/locktest"
	"flashsale/internal/servers/servertest"
)

func TestZooKeeperExcludesAcrossProcesses(t *testing.T) {
	const ttl = 2 * time.Second
	store := func(t *testing.T) string {
		return servertest.Prefix(t) + " " + strings.Join(servertest.ZooKeeper(t), ",")
	}
	locktest.Processes{Fenced: true, TTL: ttl, Store: store, Open: func(t *testing.T, store string) lock.Locker {
		prefix, addrs, _ := strings.Cut(store, " ")
		return dial(t, strings.Split(addrs, ","), Options{TTL: ttl, Root: "/" + prefix, Wait: locktest.Patience})
	}}.Run(t)
}
