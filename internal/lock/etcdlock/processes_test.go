package etcdlock

import (
	"strings"
	"testing"

	"flashsale/internal/lock"
	"flashsale/internal/lock/locktest"
	"flashsale/internal/servers/servertest"
)

func TestEtcdExcludesAcrossProcesses(t *testing.T) {
	store := func(t *testing.T) string { return servertest.Prefix(t) + " " + strings.Join(servertest.Etcd(t), ",") }
	locktest.RunProcesses(t, true, store, func(t *testing.T, store string) lock.Locker {
		prefix, addrs, _ := strings.Cut(store, " ")
		return open(t, strings.Split(addrs, ","), Options{Prefix: prefix + "/", Wait: locktest.Patience})
	})
}
