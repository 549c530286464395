package redislock

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"flashsale/internal/lock"
	"flashsale/internal/lock/locktest"
)

// network is a lock whose lines to its servers a test disturbs: all of the only
// one's, or those of a majority.
type network struct {
	lines  []*locktest.Link
	near   func(testing.TB, Options) lock.Locker // by these lines
	far    func(testing.TB, Options) lock.Locker // by others
	left   func(testing.TB) []string             // keys on the servers, but for the fence
	longer time.Duration                         // how late a late answer is
}

func (n network) disturb(how locktest.Disturbance) {
	if how.Delay > 0 {
		how.Delay = n.longer
	}
	for _, line := range n.lines {
		line.Disturb(how)
	}
}

// byLine connects over a line; whatever happens on it, an exchange ends soon.
func byLine(t testing.TB, addr string) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{
		Addr: addr, MaxRetries: -1, ContextTimeoutEnabled: true, DialerRetries: 1,
		DialTimeout: time.Second, ReadTimeout: 200 * time.Millisecond,
	})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// eachNetwork runs a test with watchdog and redlock, and every disturbance.
func eachNetwork(t *testing.T, test func(*testing.T, network, locktest.Disturbance)) {
	one, five := realRedis(t), startNodes(t, 5)
	open := map[string]func(t *testing.T) network{
		"watchdog": func(t *testing.T) network {
			connect(t, one).FlushAll(t.Context())
			line := locktest.NewLink(t, one)
			return network{
				lines:  []*locktest.Link{line},
				near:   func(t testing.TB, o Options) lock.Locker { return buildWatchdog(t, byLine(t, line.Addr()), o) },
				far:    func(t testing.TB, o Options) lock.Locker { return newWatchdog(t, one, o) },
				left:   func(t testing.TB) []string { return residue(t, connect(t, one), "item") },
				longer: 600 * time.Millisecond,
			}
		},
		"redlock": func(t *testing.T) network {
			five.fresh(t)
			n := network{longer: 600 * time.Millisecond, left: func(t testing.TB) (left []string) {
				for i := range five {
					left = append(left, five.direct(t, i).Keys(t.Context(), "*").Val()...)
				}
				return left
			}}
			addrs := make([]string, 5)
			for i := range five {
				addrs[i] = five[i].Addr()
				if i < 3 {
					n.lines = append(n.lines, locktest.NewLink(t, addrs[i]))
					addrs[i] = n.lines[i].Addr()
				}
			}
			n.near = func(t testing.TB, o Options) lock.Locker {
				var clients []redis.UniversalClient
				for _, addr := range addrs {
					clients = append(clients, byLine(t, addr))
				}
				return buildRedlock(t, clients, RedlockOptions{Options: o, NodeTimeout: 200 * time.Millisecond})
			}
			n.far = func(t testing.TB, o Options) lock.Locker {
				return five.redlock(t, RedlockOptions{Options: o, NodeTimeout: min(generous, o.TTL/2)})
			}
			return n
		},
	}
	for variant, open := range open {
		for name, how := range map[string]locktest.Disturbance{
			"reset":         {Reset: true},
			"requests lost": {DropRequests: true},
			"replies lost":  {DropReplies: true},
			"too slow":      {Delay: 1},
		} {
			t.Run(variant+"/"+name, func(t *testing.T) {
				before := goleak.IgnoreCurrent()
				t.Cleanup(func() { goleak.VerifyNone(t, before) }) // runs last
				test(t, open(t), how)
			})
		}
	}
}

// bounded calls fn, which has to end in time.
func bounded(t *testing.T, what string, fn func()) {
	t.Helper()
	begin := time.Now()
	fn()
	if took := time.Since(begin); took > 4*time.Second {
		t.Errorf("%s took %v", what, took)
	}
}

func (n network) nothingLeft(t *testing.T) {
	t.Helper()
	eventually(t, "no key is left", func() bool { return len(n.left(t)) == 0 })
}

func TestNetworkFailsDuringAcquire(t *testing.T) {
	eachNetwork(t, func(t *testing.T, n network, how locktest.Disturbance) {
		locker := n.near(t, Options{TTL: time.Minute}) // too long for a key to end by itself
		n.disturb(how)
		bounded(t, "acquire", func() {
			_, err := locker.Acquire(t.Context(), "item")
			locktest.Is(t, err, lock.ErrUnavailable)
		})
		n.nothingLeft(t)
		n.disturb(locktest.Disturbance{})
		var lease lock.Lease
		eventually(t, "granted again", func() bool {
			var err error
			lease, err = locker.Acquire(t.Context(), "item")
			return err == nil
		})
		release(t, lease)
		n.nothingLeft(t)
	})
}

func TestNetworkFailsDuringExtend(t *testing.T) {
	eachNetwork(t, func(t *testing.T, n network, how locktest.Disturbance) {
		const ttl = 1600 * time.Millisecond
		options := Options{TTL: ttl, Drift: ttl / 4, ReleaseTimeout: 500 * time.Millisecond}
		lease := acquire(t, n.near(t, options))
		other := n.far(t, Options{TTL: ttl, Wait: lock.TryOnce})
		n.disturb(how)
		bounded(t, "the loss", func() { <-lease.Lost() })
		// The holder knows, and still nobody else can be let in.
		_, err := other.Acquire(t.Context(), "item")
		locktest.Is(t, err, lock.ErrNotAcquired)
		bounded(t, "release", func() { locktest.Is(t, lease.Release(t.Context()), lock.ErrLost) })
		n.nothingLeft(t)
		release(t, acquire(t, other))
	})
}

func TestNetworkFailsForAMomentDuringExtend(t *testing.T) {
	eachNetwork(t, func(t *testing.T, n network, how locktest.Disturbance) {
		const ttl = 1800 * time.Millisecond
		lease := acquire(t, n.near(t, Options{TTL: ttl}))
		n.disturb(how)
		time.Sleep(ttl/3 + 200*time.Millisecond) // an extension has failed
		n.disturb(locktest.Disturbance{})
		select {
		case <-lease.Lost():
			t.Error("lost")
		case <-time.After(ttl * 3 / 4):
		}
		release(t, lease)
		n.nothingLeft(t)
	})
}

func TestNetworkFailsDuringRelease(t *testing.T) {
	eachNetwork(t, func(t *testing.T, n network, how locktest.Disturbance) {
		const ttl = 2400 * time.Millisecond
		lease := acquire(t, n.near(t, Options{TTL: ttl, ReleaseTimeout: 700 * time.Millisecond}))
		n.disturb(how)
		bounded(t, "release", func() { locktest.Is(t, lease.Release(t.Context()), lock.ErrUnavailable) })
		n.nothingLeft(t) // by the TTL, if the release has not arrived
		release(t, acquire(t, n.far(t, Options{TTL: ttl, Wait: lock.TryOnce})))
	})
}
