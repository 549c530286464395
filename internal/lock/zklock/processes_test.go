package zklock

import (
	"strings"
	"testing"

	"flashsale/internal/lock"
	"flashsale/internal/lock/locktest"
	"flashsale/internal/servers/servertest"
)

func TestZooKeeperExcludesAcrossProcesses(t *testing.T) {
	store := func(t *testing.T) string {
		return servertest.Prefix(t) + " " + strings.Join(servertest.ZooKeeper(t), ",")
	}
	locktest.RunProcesses(t, true, store, func(t *testing.T, store string) lock.Locker {
		prefix, addrs, _ := strings.Cut(store, " ")
		return dial(t, strings.Split(addrs, ","), Options{Root: "/" + prefix, Wait: locktest.Patience})
	})
}
