package redislock

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"flashsale/internal/lock"
	"flashsale/internal/lock/locktest"
	"flashsale/internal/rediskey"
	"flashsale/internal/redisstock"
	"flashsale/internal/servers"
	"flashsale/internal/servers/servertest"
	"flashsale/internal/stock"
)

// pair is a primary with a replica, and the line that the replica listens on.
type pair struct {
	primary, replica servers.Server
	line             *locktest.Link
}

func startPair(t testing.TB) pair {
	t.Helper()
	p := pair{primary: servertest.RedisServer(t), replica: servertest.RedisServer(t)}
	if !p.primary.Real() {
		t.Skip("needs redis-server: the stand-in has no replication")
	}
	p.line = locktest.NewLink(t, p.primary.Addr())
	host, port, err := net.SplitHostPort(p.line.Addr())
	if err != nil {
		t.Fatal(err)
	}
	connect(t, p.primary.Addr()).ConfigSet(t.Context(), "repl-diskless-sync-delay", "0") // else 5 s, for more replicas to come
	replica := connect(t, p.replica.Addr())
	if err := replica.ReplicaOf(t.Context(), host, port).Err(); err != nil {
		t.Fatal(err)
	}
	connect(t, p.primary.Addr()).Set(t.Context(), "marker", "1", time.Minute)
	eventually(t, "the replica follows", func() bool { return replica.Get(t.Context(), "marker").Val() == "1" })
	return p
}

// failOver ends the primary and makes the replica one.
func (p pair) failOver(t testing.TB) (addr string) {
	t.Helper()
	p.primary.Kill()
	if err := connect(t, p.replica.Addr()).ReplicaOf(t.Context(), "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	return p.replica.Addr()
}

// TestFailoverRightAfterTheGrant: replication is asynchronous, so a lock on one
// Redis with a replica has two holders. The fence tells the older one's writes
// from the newer's.
func TestFailoverRightAfterTheGrant(t *testing.T) {
	shop := realRedis(t)
	for _, variant := range variants {
		t.Run(variant.name, func(t *testing.T) {
			servers := startPair(t)
			older := acquire(t, variant.build(t, connect(t, servers.primary.Addr()), Options{}))
			release(t, older) // so far, the replica knows all: also the fence
			client := connect(t, servers.replica.Addr())
			eventually(t, "the fence and the release are replicated", func() bool {
				return client.Exists(t.Context(), fenceKey).Val() == 1 && client.Exists(t.Context(), lockKey).Val() == 0
			})

			servers.line.Disturb(locktest.Disturbance{DropReplies: true})
			older = acquire(t, variant.build(t, connect(t, servers.primary.Addr()), Options{}))
			promoted := servers.failOver(t)
			newer := acquire(t, variant.build(t, connect(t, promoted), Options{Wait: lock.TryOnce}))
			select {
			case <-older.Lost():
				t.Fatal("the older holder knew: the lesson has gone")
			default: // two hold the lock
			}
			if newer.Fence() <= older.Fence() {
				t.Fatalf("fence %d after %d", newer.Fence(), older.Fence())
			}

			newerWrites(t, shop, newer.Fence(), older.Fence())
			release(t, newer)
			if err := older.Release(t.Context()); err == nil {
				t.Error("the older one released what it had lost")
			}
		})
	}
}

// newerWrites sells a unit under the newer fence, after which the older one is
// refused. The counter is on another server than the lock.
func newerWrites(t *testing.T, addr string, newer, older uint64) {
	t.Helper()
	store := redisstock.New(connect(t, addr), redisstock.Options{Keys: rediskey.Keys{Prefix: servertest.Prefix(t)}})
	sale := stock.Sale{ID: "phone", ItemID: "phone", Title: "Phone", PriceCents: 100, Stock: 10, PerUserLimit: 1, Variant: "watchdog", Fencing: true}
	if err := store.Preload(t.Context(), sale); err != nil {
		t.Fatal(err)
	}
	defer store.Purge(t.Context())
	buy := func(fence uint64, user string) error {
		t.Helper()
		results, err := store.Guarded().Deduct(t.Context(), fence, []stock.Deduction{{
			PurchaseID: stock.PurchaseID("phone", user, "key"), SaleID: "phone", UserID: user, Quantity: 1}})
		if err != nil {
			return err
		}
		return results[0].Err
	}
	if err := buy(older, "early"); err != nil { // nothing newer has been seen
		t.Error(err)
	}
	if err := buy(newer, "bob"); err != nil {
		t.Errorf("the newer holder: %v", err)
	}
	if err := buy(older, "ann"); !errors.Is(err, stock.ErrStale) {
		t.Errorf("the older holder: %v, want %v", err, stock.ErrStale)
	}
	if snapshot, err := store.Snapshot(t.Context(), "phone"); err != nil || snapshot.Remaining != 8 {
		t.Errorf("%+v, %v: want 8 left", snapshot, err)
	}
}

// TestOneNodeOfARedlockFailsOver to a replica that has not seen the grant: the
// other four outvote it.
func TestOneNodeOfARedlockFailsOver(t *testing.T) {
	four, fifth := startNodes(t, 4), startPair(t)
	node := connect(t, fifth.primary.Addr())
	fifth.line.Disturb(locktest.Disturbance{DropReplies: true})
	lease := acquire(t, buildRedlock(t, append(four.connect(t), node), RedlockOptions{}))
	eventually(t, "all have the token", func() bool { return node.Exists(t.Context(), lockKey).Val() == 1 })
	promoted := connect(t, fifth.failOver(t))
	if promoted.Exists(t.Context(), lockKey).Val() != 0 {
		t.Fatal("the replica saw the grant: the test shows nothing")
	}
	others := buildRedlock(t, append(four.connect(t), promoted), RedlockOptions{Options: Options{Wait: 300 * time.Millisecond}})
	_, err := others.Acquire(t.Context(), "item")
	locktest.Is(t, err, lock.ErrNotAcquired)
	release(t, lease)
	release(t, acquire(t, others))
}

// TestNodeThatComesBackEmpty in the middle of a lease that just had a quorum
// makes two holders, unless it stays away for a TTL.
func TestNodeThatComesBackEmpty(t *testing.T) {
	five := startNodes(t, 5)
	// holdOnThree is a lease on the nodes 0, 1 and 2: its holder can't reach the others.
	holdOnThree := func(t *testing.T, ttl time.Duration) *redlockLease {
		five.fresh(t)
		clients := five.connect(t)
		for i := 3; i < 5; i++ {
			clients[i] = connect(t, freeAddr(t))
		}
		lease := acquire(t, buildRedlock(t, clients, RedlockOptions{Options: Options{TTL: ttl}}))
		if got := strings.Count(strings.Join(five.tokens(t), ","), lease.(*redlockLease).token); got != 3 {
			t.Fatalf("on %d nodes", got)
		}
		return lease.(*redlockLease)
	}
	t.Run("at once: two hold the lock", func(t *testing.T) {
		older := holdOnThree(t, time.Minute)
		five.empty(t, 2)
		newer := acquire(t, five.redlock(t, RedlockOptions{Options: Options{Wait: lock.TryOnce}}))
		if older.IsLost() {
			t.Error("the older holder knew: the lesson has gone")
		}
		release(t, newer)
		_ = older.Release(t.Context())
	})
	t.Run("after a TTL: the older holder has been told", func(t *testing.T) {
		const ttl = 1500 * time.Millisecond
		older := holdOnThree(t, ttl)
		if err := five.direct(t, 2).FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		five.kill(2)
		died := time.Now()
		_, err := five.redlock(t, RedlockOptions{Options: Options{Wait: lock.TryOnce}}).Acquire(t.Context(), "item")
		locktest.Is(t, err, lock.ErrNotAcquired)
		time.Sleep(time.Until(died.Add(ttl))) // the rule of the delayed restart
		start(t, five[2])
		newer := acquire(t, five.redlock(t, RedlockOptions{Options: Options{Wait: time.Minute}}))
		if !older.IsLost() {
			t.Error("two hold the lock")
		}
		release(t, newer)
		locktest.Is(t, older.Release(t.Context()), lock.ErrLost)
	})
}
