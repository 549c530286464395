package etcdlock

import (
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"flashsale/internal/lock"
	"flashsale/internal/lock/locktest"
	"flashsale/internal/servers/servertest"
)

func TestEtcdConforms(t *testing.T) {
	endpoints := servertest.Etcd(t)
	features := locktest.Features{Excludes: true, AcrossProcesses: true, Fence: true, Expires: true, Extends: true, LeastTTL: time.Second}
	locktest.Run(t, features, func(t *testing.T) locktest.Store {
		prefix := servertest.Prefix(t) + "/"
		client := connect(t, endpoints)
		return locktest.Store{
			New: func(t testing.TB, s locktest.Setting) lock.Locker {
				return open(t, endpoints, Options{TTL: s.TTL, Wait: s.Wait, Drift: s.Drift, Prefix: prefix})
			},
			Steal:   func(t testing.TB, key string) { steal(t, client, prefix+key+"/") },
			Residue: func(t testing.TB, _ string) []string { return entries(t, client, prefix) },
		}
	})
}

func open(t testing.TB, endpoints []string, o Options) *Lock {
	t.Helper()
	l, err := Dial(endpoints, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func connect(t testing.TB, endpoints []string) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// steal ends the lease of who is at the front of the line.
func steal(t testing.TB, client *clientv3.Client, name string) {
	t.Helper()
	reply, err := client.Get(t.Context(), name, clientv3.WithFirstCreate()...)
	if err != nil || len(reply.Kvs) == 0 {
		t.Fatalf("steal: nobody holds it, %v", err)
	}
	if _, err := client.Revoke(t.Context(), clientv3.LeaseID(reply.Kvs[0].Lease)); err != nil {
		t.Fatal(err)
	}
}

func entries(t testing.TB, client *clientv3.Client, prefix string) (names []string) {
	t.Helper()
	reply, err := client.Get(t.Context(), prefix, clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range reply.Kvs {
		names = append(names, string(kv.Key))
	}
	return names
}

func TestManyCyclesLeaveEntriesOrLeasesBehind(t *testing.T) {
	endpoints := []string{servertest.EtcdServer(t).Addr()} // whose leases are this test's alone
	client := connect(t, endpoints)
	locktest.RunManyCycles(t, locktest.Store{
		New:     func(t testing.TB, s locktest.Setting) lock.Locker { return open(t, endpoints, Options{Wait: s.Wait}) },
		Residue: func(t testing.TB, _ string) []string { return entries(t, client, defaultPrefix) },
	}, "a", "b", "c", "d", "e", "f", "g", "h")
	reply, err := client.Leases(t.Context())
	if err != nil || len(reply.Leases) > 0 {
		t.Errorf("%d leases are left, %v", len(reply.Leases), err)
	}
}
