package redislock

import (
	"strings"
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
	lines   []*locktest.Link
	near    func(testing.TB, Options) lock.Locker // by these lines
	far     func(testing.TB, Options) lock.Locker // by others; excludes near
	left    func(testing.TB) []string             // keys on the servers, but for the fence
	lasting bool                                  // its leases are extended
}

func (n network) disturb(how locktest.Disturbance) {
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

// maker makes a lock with a client.
type maker func(testing.TB, *redis.Client, Options) lock.Locker

func makeWriter(t testing.TB, client *redis.Client, o Options) lock.Locker {
	return makeReadWrite(t, client, o).Writer()
}

func makeReader(t testing.TB, client *redis.Client, o Options) lock.Locker {
	return makeReadWrite(t, client, o).Reader()
}

func makeReadWrite(t testing.TB, client *redis.Client, o Options) *ReadWrite {
	t.Helper()
	rw, err := NewReadWrite(client, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rw.Close() })
	return rw
}

// onOne is the network of a lock in one Redis, where it has names of its own.
func onOne(near, far maker, lasting bool) func(t *testing.T, addr, names string) network {
	return func(t *testing.T, addr, names string) network {
		line, direct := locktest.NewLink(t, addr), connect(t, addr)
		named := func(make maker, client *redis.Client) func(testing.TB, Options) lock.Locker {
			return func(t testing.TB, o Options) lock.Locker {
				o.Keys = func(key string) (lock, fence string) { return defaultKeys(names + key) }
				return make(t, client, o)
			}
		}
		return network{
			lines:   []*locktest.Link{line},
			near:    named(near, byLine(t, line.Addr())),
			far:     named(far, direct),
			left:    func(t testing.TB) []string { return direct.Keys(t.Context(), "lock:{"+names+"*").Val() },
			lasting: lasting,
		}
	}
}

// onFive is redlock's network, with lines to three of five servers.
func onFive(t *testing.T, five nodes, names string) network {
	keys := func(key string) (lock, fence string) { return defaultKeys(names + key) }
	n := network{lasting: true, left: func(t testing.TB) (left []string) {
		for i := range five {
			left = append(left, five.direct(t, i).Keys(t.Context(), "*{"+names+"*").Val()...)
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
		o.Keys = keys
		return buildRedlock(t, clients, RedlockOptions{Options: o, NodeTimeout: 200 * time.Millisecond})
	}
	n.far = func(t testing.TB, o Options) lock.Locker {
		o.Keys = keys
		return five.redlock(t, RedlockOptions{Options: o, NodeTimeout: min(generous, o.TTL/2)})
	}
	return n
}

// eachNetwork runs a test with every lock whose failure is of its own kind, and
// every disturbance.
func eachNetwork(t *testing.T, test func(*testing.T, network, locktest.Disturbance)) {
	one, five := realRedis(t), startNodes(t, 5)
	variants := map[string]func(t *testing.T, addr, names string) network{
		"setnx":    onOne(buildSetNX, buildSetNX, false),
		"watchdog": onOne(buildWatchdog, buildWatchdog, true),
		"cohort":   onOne(buildCohort, buildCohort, true),
		"fair":     onOne(buildFair, buildFair, true),
		"writer":   onOne(makeWriter, makeWriter, true),
		"reader":   onOne(makeReader, makeWriter, true),
		"redlock":  func(t *testing.T, _, names string) network { return onFive(t, five, names) },
	}
	if client := connect(t, one); hasFunctions(t, client) {
		variants["function"] = onOne(buildFunction, buildFunction, false)
		if err := loadLibrary(t.Context(), client); err != nil { // so that the first call is carried out
			t.Fatal(err)
		}
	} else {
		t.Log("LEFT OUT: function, which needs a real Redis")
	}
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) }) // when all have ended
	for variant, open := range variants {
		for name, how := range locktest.Disturbances(300 * time.Millisecond) {
			t.Run(variant+"/"+name, func(t *testing.T) {
				t.Parallel()
				test(t, open(t, one, strings.ReplaceAll(variant+"-"+name+"-", " ", "-")), how)
			})
		}
	}
}

const bound = 4 * time.Second // of any call on a disturbed line

func (n network) nothingLeft(t *testing.T) {
	t.Helper()
	eventually(t, "no key is left", func() bool { return len(n.left(t)) == 0 })
}

func TestNetworkFailsDuringAcquire(t *testing.T) {
	eachNetwork(t, func(t *testing.T, n network, how locktest.Disturbance) {
		locker := n.near(t, Options{TTL: time.Minute}) // too long for a key to end by itself
		n.disturb(how)
		locktest.Bounded(t, bound, "acquire", func() {
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
		locktest.Bounded(t, bound, "the loss", func() { <-lease.Lost() })
		// The holder knows, and still nobody else can be let in.
		_, err := other.Acquire(t.Context(), "item")
		locktest.Is(t, err, lock.ErrNotAcquired)
		locktest.Bounded(t, bound, "release", func() { locktest.Is(t, lease.Release(t.Context()), lock.ErrLost) })
		n.nothingLeft(t)
		release(t, acquire(t, other))
	})
}

func TestNetworkFailsForAMomentDuringExtend(t *testing.T) {
	eachNetwork(t, func(t *testing.T, n network, how locktest.Disturbance) {
		const ttl = 1800 * time.Millisecond
		options := Options{TTL: ttl}
		if !n.lasting {
			options.TTL *= 3 // nothing is sent, nor missed
		}
		lease := acquire(t, n.near(t, options))
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
		locktest.Bounded(t, bound, "release", func() { locktest.Is(t, lease.Release(t.Context()), lock.ErrUnavailable) })
		n.nothingLeft(t) // by the TTL, if the release has not arrived
		release(t, acquire(t, n.far(t, Options{TTL: ttl, Wait: lock.TryOnce})))
	})
}
