package etcdlock

import (
	"strings"
	"testing"
	"time"

	"flashsale/internal/lock"
	"flashsale/internal/lock/locktest"
	"flashsale/internal/servers/servertest"
)

func TestEtcdExcludesAcrossProcesses(t *testing.T) {
	const ttl = 2 * time.Second
	store := func(t *testing.T) string { return servertest.Prefix(t) + " " + strings.Join(servertest.Etcd(t), ",") }
	locktest.Processes{Fenced: true, TTL: ttl, Store: store, Open: func(t *testing.T, store string) lock.Locker {
		prefix, addrs, _ := strings.Cut(store, " ")
		return open(t, strings.Split(addrs, ","), Options{TTL: ttl, Prefix: prefix + "/", Wait: locktest.Patience})
	}}.Run(t)
}
