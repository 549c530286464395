package zklock

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"flashsale/internal/lock"
	"flashsale/internal/lock/locktest"
	"flashsale/internal/servers/servertest"
)

// patience bounds what should happen much sooner.
const patience = 20 * time.Second

func TestALeaseOutlivesAShortAbsenceOfZooKeeper(t *testing.T) {
	server := servertest.ZooKeeperServer(t)
	l := dial(t, []string{server.Addr()}, Options{TTL: 30 * time.Second, Wait: lock.TryOnce, Timeout: 10 * time.Second})
	lease := acquire(t, l)
	server.Kill()
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-lease.Lost():
		t.Fatal("lost within its TTL")
	default:
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Errorf("release: %v", err)
	}
	next := acquire(t, l)
	if next.Fence() <= lease.Fence() {
		t.Errorf("fence %d after %d", next.Fence(), lease.Fence())
	}
	if err := next.Release(t.Context()); err != nil {
		t.Errorf("release: %v", err)
	}
}

func TestHolderIsToldWhenZooKeeperStaysAway(t *testing.T) {
	const ttl, timeout = 2 * time.Second, 500 * time.Millisecond
	server := servertest.ZooKeeperServer(t)
	l := dial(t, []string{server.Addr()}, Options{TTL: ttl, Wait: lock.TryOnce, Timeout: timeout})
	lease := acquire(t, l)
	server.Kill()
	killed := time.Now()

	_, err := dial(t, []string{server.Addr()}, Options{Wait: lock.TryOnce, Timeout: timeout}).Acquire(t.Context(), "item")
	locktest.Is(t, err, lock.ErrUnavailable)
	if took := time.Since(killed); took > 10*timeout {
		t.Errorf("it took %v to say so", took)
	}
	select {
	case <-lease.Lost():
	case <-time.After(patience):
		t.Fatal("the holder was not told")
	}
	if took := time.Since(killed); took > ttl+time.Second {
		t.Errorf("the holder was told after %v", took)
	}
	locktest.Is(t, lease.Release(t.Context()), lock.ErrLost)
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
	if err := lease.Release(t.Context()); err != nil {
		t.Errorf("release: %v", err)
	}
}

// Who leaves while the creation is under way leaves no node, though its session
// lasts.
func TestACallerThatLeavesLeavesNoNode(t *testing.T) {
	addrs := servertest.ZooKeeper(t)
	root := "/" + servertest.Prefix(t)
	observer := dial(t, addrs, Options{})
	l := dial(t, addrs, Options{Root: root})
	if err := acquire(t, l).Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	for after := range 20 { // at various instants of an acquisition that takes some milliseconds
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(after)*150*time.Microsecond)
		lease, err := l.Acquire(ctx, "item")
		cancel()
		if err == nil {
			err = lease.Release(t.Context())
			if err != nil {
				t.Errorf("release: %v", err)
			}
			continue
		}
		locktest.Is(t, err, context.DeadlineExceeded)
	}
	for deadline := time.Now().Add(patience); len(nodes(t, observer, root+"/key-item")) > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("left behind: %q", nodes(t, observer, root+"/key-item"))
		}
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
	next := dial(t, addrs, Options{Root: root, Wait: patience})
	second := acquire(t, next)
	select {
	case <-first.Lost():
	default:
		t.Error("another was granted the lock before its holder knew of the loss")
	}
	if second.Fence() <= first.Fence() {
		t.Errorf("fence %d after %d", second.Fence(), first.Fence())
	}
	locktest.Is(t, first.Release(t.Context()), lock.ErrLost)
	if err := second.Release(t.Context()); err != nil {
		t.Errorf("release: %v", err)
	}
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
