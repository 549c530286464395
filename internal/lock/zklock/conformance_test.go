package zklock

import (
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"flashsale/internal/lock"
	"flashsale/internal/lock/locktest"
	"flashsale/internal/servers/servertest"
)

func TestZooKeeperConforms(t *testing.T) {
	addrs := servertest.ZooKeeper(t)
	features := locktest.Features{Excludes: true, AcrossProcesses: true, Fence: true, Expires: true, Extends: true, LeastTTL: 2 * time.Second}
	locktest.Run(t, features, func(t *testing.T) locktest.Store {
		root := "/" + servertest.Prefix(t)
		observer := dial(t, addrs, Options{})
		return locktest.Store{
			New: func(t testing.TB, s locktest.Setting) lock.Locker {
				return dial(t, addrs, Options{TTL: s.TTL, Wait: s.Wait, Drift: s.Drift, Root: root})
			},
			Steal: func(t testing.TB, key string) {
				for _, name := range nodes(t, observer, root+"/key-"+key) {
					if err := observer.conn.Delete(root+"/key-"+key+"/"+name, -1); err != nil {
						t.Error(err)
					}
				}
			},
			Residue: func(t testing.TB, key string) []string { return nodes(t, observer, root+"/key-"+key) },
		}
	})
}

func dial(t testing.TB, addrs []string, o Options) *Lock {
	t.Helper()
	l, err := Dial(addrs, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func nodes(t testing.TB, l *Lock, parent string) []string {
	t.Helper()
	names, _, err := l.conn.Children(parent)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		t.Fatal(err)
	}
	return names
}

func TestManyCyclesLeaveNodesBehind(t *testing.T) {
	addrs := servertest.ZooKeeper(t)
	root := "/" + servertest.Prefix(t)
	observer := dial(t, addrs, Options{})
	locktest.RunManyCycles(t, locktest.Store{
		New: func(t testing.TB, s locktest.Setting) lock.Locker {
			return dial(t, addrs, Options{Wait: s.Wait, Root: root})
		},
		Residue: func(t testing.TB, key string) []string { return nodes(t, observer, root+"/key-"+key) },
	}, "a", "b", "c", "d", "e", "f", "g", "h")
	if left := nodes(t, observer, root); len(left) > 8 { // the keys' own, which ZooKeeper deletes some time
		t.Errorf("left: %q", left)
	}
}
