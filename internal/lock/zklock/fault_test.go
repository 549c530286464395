package zklock

import (
	"context"
	"crypto/rand"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"flashsale/internal/lock"
	"flashsale/internal/lock/locktest"
	"flashsale/internal/servers"
	"flashsale/internal/servers/servertest"
)

// patience bounds what should happen much sooner.
const patience = 20 * time.Second

func TestZooKeeperGoesAway(t *testing.T) {
	locktest.Away[servers.Server]{
		Server: servertest.ZooKeeperServer,
		Open: func(t testing.TB, server servers.Server, s locktest.Setting, timeout time.Duration) lock.Locker {
			return dial(t, []string{server.Addr()}, Options{TTL: s.TTL, Wait: s.Wait, Timeout: timeout})
		},
		Waits: func(t testing.TB, server servers.Server) func() bool {
			observer := dial(t, []string{server.Addr()}, Options{})
			return func() bool { return len(nodes(t, observer, defaultRoot+"/key-item")) == 2 }
		},
		Returns: true,
	}.Run(t)
}

// The connection breaks when the reply to a creation is due: the node is found
// again by its token, and there is no second one, which would wait for the first.
func TestALostReplyToACreationIsNoSecondNode(t *testing.T) {
	addrs := servertest.ZooKeeper(t)
	root := "/" + servertest.Prefix(t)
	proxy := newProxy(t, addrs[0])
	observer := dial(t, addrs, Options{})
	l := dial(t, []string{proxy.addr}, Options{TTL: 20 * time.Second, Root: root, Wait: 5 * time.Second, Timeout: 5 * time.Second})
	if err := acquire(t, l).Release(t.Context()); err != nil { // makes the containers
		t.Fatal(err)
	}
	proxy.cut.Store(true)
	lease := acquire(t, l)
	if there := nodes(t, observer, root+"/key-item"); len(there) != 1 {
		t.Errorf("nodes: %q", there)
	}
	release(t, lease)
}

// leaving is a context that ends when it is first waited for.
type leaving struct {
	context.Context
	leave func()
}

func (l leaving) Done() <-chan struct{} {
	l.leave()
	return l.Context.Done()
}

// A creation that is left under way may come after its removal, and its node hangs
// on the session, which may last.
func TestACallerThatLeavesLeavesTheCreationUnderWay(t *testing.T) {
	l := dial(t, servertest.ZooKeeper(t), Options{Root: "/" + servertest.Prefix(t)})
	release(t, acquire(t, l)) // makes the containers
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		_, err := l.Acquire(leaving{ctx, cancel}, "item")
		locktest.Is(t, err, context.Canceled)
	}
	parent := l.Root + "/key-item"
	if left := nodes(t, l, parent); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if node, err := l.makeEntry(leaving{ctx, cancel}, parent, rand.Text()+"-"); node == "" || err != nil {
		t.Errorf("not waited for: %q, %v", node, err)
	}
}

// A session that ends takes its leases along, and another may follow it.
func TestTheEndOfASessionIsALoss(t *testing.T) {
	addrs := servertest.ZooKeeper(t)
	root := "/" + servertest.Prefix(t)
	proxy := newProxy(t, addrs[0])
	l := dial(t, []string{proxy.addr}, Options{TTL: 2 * time.Second, Root: root, Timeout: 500 * time.Millisecond})
	first := acquire(t, l)
	proxy.refuse.Store(true)
	proxy.cut.Store(true)
	locktest.TakeOver(t, dial(t, addrs, Options{Root: root, Wait: patience}), first)
	locktest.Is(t, first.Release(t.Context()), lock.ErrLost)
}

// Who waits has a lease too, and is of no use at the front without it, though its
// node may outlive it: the holder's clock is ahead of ZooKeeper's.
func TestAWaiterWhoseLeaseEndedIsNotLetIn(t *testing.T) {
	l := dial(t, servertest.ZooKeeper(t), Options{Root: "/" + servertest.Prefix(t)})
	parent, deadline := l.Root+"/key-item", time.Now().Add(time.Minute)
	ahead, waiter := entry(t, l, parent), entry(t, l, parent)
	waiter.Lose()
	locktest.Bounded(t, patience, "the wait", func() {
		if err := waiter.awaitEnd(t.Context(), ahead.node, deadline); err != nil {
			t.Error(err)
		}
	})
	release(t, ahead)
	locktest.Is(t, waiter.line(t.Context(), deadline), lock.ErrUnavailable)
	locktest.Is(t, waiter.Release(t.Context()), lock.ErrLost)

	gone := entry(t, l, parent)
	if there, err := gone.end(t.Context()); !there || err != nil {
		t.Fatal(there, err)
	}
	locktest.Is(t, gone.identify(t.Context()), lock.ErrUnavailable)
	if _, err := gone.ahead(t.Context()); err == nil {
		t.Error("nobody is before who isn't in line")
	}
	locktest.Is(t, gone.line(t.Context(), deadline), lock.ErrUnavailable)
	locktest.Is(t, gone.Release(t.Context()), lock.ErrLost)
}

// entry is a place in a line.
func entry(t *testing.T, l *Lock, parent string) *lease {
	t.Helper()
	turn, err := new(lock.Queue).Enter(t.Context(), "item", 0)
	if err != nil {
		t.Fatal(err)
	}
	sent := time.Now()
	node, err := l.makeEntry(t.Context(), parent, rand.Text()+"-")
	if err != nil {
		t.Fatal(err)
	}
	return newLease(t.Context(), l, "item", parent, node, sent, turn)
}

// The server has the last word on the timeout.
func TestTheGrantedTimeoutCounts(t *testing.T) {
	l := dial(t, servertest.ZooKeeper(t), Options{TTL: time.Hour, Root: "/" + servertest.Prefix(t)})
	held := acquire(t, l)
	defer held.Release(t.Context())
	if got := held.(*lease).length(); got <= 0 || got > 2*time.Minute {
		t.Errorf("taken for granted: %v", got)
	}
}

func TestNumbersGoOnBelowZero(t *testing.T) {
	for _, pair := range [][2]string{{"a-0000000001", "b-0000000002"}, {"a-2147483647", "b--2147483648"}, {"a--0000000001", "b-0000000000"}} {
		if !before(pair[0], pair[1]) || before(pair[1], pair[0]) {
			t.Errorf("%s is not before %s", pair[0], pair[1])
		}
	}
}

func TestWrongOptionsAreRefused(t *testing.T) {
	for name, o := range map[string]Options{
		"TTL": {TTL: time.Millisecond}, "long TTL": {TTL: 2 * time.Hour}, "Drift": {TTL: 4 * time.Second, Drift: 2 * time.Second},
		"Timeout": {Timeout: -1}, "Root": {Root: "lock"},
	} {
		if _, err := Dial([]string{"127.0.0.1:1"}, o); err == nil {
			t.Errorf("%s is allowed", name)
		}
	}
}

func release(t testing.TB, lease lock.Lease) {
	t.Helper()
	if err := lease.Release(t.Context()); err != nil {
		t.Errorf("release: %v", err)
	}
}

func acquire(t testing.TB, l *Lock) lock.Lease {
	t.Helper()
	lease, err := l.Acquire(t.Context(), "item")
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// proxy stands between a client and its server.
type proxy struct {
	addr   string
	cut    atomic.Bool // break the connection instead of passing on the next answer
	refuse atomic.Bool // take no more connections
}

func newProxy(t *testing.T, server string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	p := &proxy{addr: listener.Addr().String()}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			if p.refuse.Load() {
				client.Close()
				continue
			}
			behind, err := net.Dial("tcp", server)
			if err != nil {
				client.Close()
				continue
			}
			pass := func(to, from net.Conn, answers bool) {
				defer to.Close()
				defer from.Close()
				buffer := make([]byte, 1<<16)
				for {
					n, err := from.Read(buffer)
					if err != nil || answers && p.cut.CompareAndSwap(true, false) {
						return
					}
					if _, err := to.Write(buffer[:n]); err != nil {
						return
					}
				}
			}
			go pass(behind, client, false)
			go pass(client, behind, true)
		}
	}()
	return p
}
