package redislock

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"flashsale/internal/lock"
	"flashsale/internal/lock/locktest"
	"flashsale/internal/servers/servertest"
)

// replicated is a server with a replica that keeps up.
func replicated(t *testing.T) (addr string, primary, replica *redis.Client) {
	t.Helper()
	servers := []interface {
		Addr() string
		Real() bool
	}{servertest.RedisServer(t), servertest.RedisServer(t)}
	if !servers[0].Real() {
		t.Skip("a stand-in has no replicas")
	}
	addr = servers[0].Addr()
	primary, replica = connect(t, addr), connect(t, servers[1].Addr())
	host, port, _ := net.SplitHostPort(addr)
	primary.ConfigSet(t.Context(), "repl-diskless-sync-delay", "0")
	if err := replica.ReplicaOf(t.Context(), host, port).Err(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the replica keeps up", func() bool {
		primary.Set(t.Context(), "probe", 1, time.Minute)
		return primary.Wait(t.Context(), 1, 100*time.Millisecond).Val() == 1
	})
	primary.Del(t.Context(), "probe")
	return addr, primary, replica
}

func TestGrantCountsBeforeAReplicaHasIt(t *testing.T) {
	addr, primary, replica := replicated(t)
	options := Options{Replicas: 1, ReplicaTimeout: 5 * time.Second}
	for _, variant := range variants {
		t.Run(variant.name, func(t *testing.T) {
			lease := acquire(t, variant.build(t, connect(t, addr), options))
			if replica.Exists(t.Context(), lockKey, fenceKey).Val() != 2 {
				t.Error("the replica has not seen lock and fence")
			}
			if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}

	// One replica can't stand for two.
	options = Options{Replicas: 2, ReplicaTimeout: 10 * time.Millisecond}
	for _, variant := range variants {
		t.Run(variant.name+" with too few", func(t *testing.T) {
			_, err := variant.build(t, connect(t, addr), options).Acquire(t.Context(), "item")
			locktest.Is(t, err, lock.ErrUnavailable)
			if err == nil || !strings.Contains(err.Error(), "1 of 2 replicas acknowledged") {
				t.Errorf("got %v", err)
			}
			if left := residue(t, primary, "item"); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}

// WAIT itself may fail when the lock has been granted.
func TestFailedWaitKeepsTheLock(t *testing.T) {
	addr := realRedis(t)
	for _, variant := range variants {
		t.Run(variant.name, func(t *testing.T) {
			client := connect(t, addr)
			variant.skipUnless(t, client)
			failing := connect(t, addr)
			failing.AddHook(waitFails{})
			_, err := variant.build(t, failing, Options{Replicas: 1}).Acquire(t.Context(), "item")
			locktest.Is(t, err, lock.ErrUnavailable)
			if left := residue(t, client, "item"); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}

// waitFails is a hook: the server refuses to WAIT.
type waitFails struct{ before } // for its other hooks

func (waitFails) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "wait" {
			cmd.SetErr(redis.Nil) // any error reply will do
			return redis.Nil
		}
		return next(ctx, cmd)
	}
}

func TestServerThatWantsReplicasLooksLikeContention(t *testing.T) {
	addr := realRedis(t)
	client := connect(t, addr)
	if client.ConfigSet(t.Context(), "min-replicas-to-write", "1").Err() != nil {
		t.Skip("a stand-in has no replicas")
	}
	for _, variant := range variants {
		t.Run(variant.name, func(t *testing.T) {
			_, err := variant.build(t, connect(t, addr), Options{}).Acquire(t.Context(), "item")
			locktest.Is(t, err, lock.ErrUnavailable)
		})
	}
}

func TestReplicasOfAClusterAreAccepted(t *testing.T) {
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{freeAddr(t)}})
	defer cluster.Close()
	if _, err := NewWatchdog(cluster, Options{Replicas: 1}); err == nil {
		t.Error("accepted, though no node's connection can be held on to")
	}
}
