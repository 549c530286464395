package etcdlock

import (
	"context"
	"path"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"flashsale/internal/lock"
	"flashsale/internal/lock/locktest"
	"flashsale/internal/servers"
	"flashsale/internal/servers/servertest"
)

// patience bounds what should happen much sooner.
const patience = 20 * time.Second

func TestEtcdGoesAway(t *testing.T) {
	locktest.Away[servers.Server]{
		Server: servertest.EtcdServer,
		Open: func(t testing.TB, server servers.Server, s locktest.Setting, timeout time.Duration) lock.Locker {
			return open(t, []string{server.Addr()}, Options{TTL: s.TTL, Wait: s.Wait, Timeout: timeout})
		},
		Waits: func(t testing.TB, server servers.Server) func() bool {
			observer := connect(t, []string{server.Addr()})
			return func() bool { return len(entries(t, observer, defaultPrefix)) == 2 }
		},
		Returns: true,
	}.Run(t)
}

// Each call of an acquisition ends in a lost reply, or the caller goes while it
// is under way: nothing may stay behind.
func TestNothingStaysOfAnAcquisitionThatFailed(t *testing.T) {
	endpoints := servertest.Etcd(t)
	observer := connect(t, endpoints)
	for _, method := range []string{"LeaseGrant", "Txn", "Range"} {
		for name, test := range map[string]struct {
			fault func(cancel func()) error
			want  error
		}{
			"reply lost":    {func(func()) error { return status.Error(codes.Unknown, "connection lost") }, lock.ErrUnavailable},
			"caller leaves": {func(cancel func()) error { cancel(); return nil }, context.Canceled},
		} {
			t.Run(method+"/"+name, func(t *testing.T) {
				prefix := servertest.Prefix(t) + "/"
				holder := open(t, endpoints, Options{Prefix: prefix})
				held := acquire(t, holder) // so that there is a line
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				l, err := New(faulty(t, endpoints, method, func() error { return test.fault(cancel) }), Options{Prefix: prefix, Wait: time.Second})
				if err != nil {
					t.Fatal(err)
				}
				_, err = l.Acquire(ctx, "item")
				locktest.Is(t, err, test.want)
				if err := held.Release(t.Context()); err != nil {
					t.Error(err)
				}
				if left := entries(t, observer, prefix); len(left) > 0 {
					t.Errorf("left behind: %q", left)
				}
			})
		}
	}
}

func TestAReleaseWhoseReplyIsLostIsNoLoss(t *testing.T) {
	l, err := New(faulty(t, servertest.Etcd(t), "LeaseRevoke", func() error { return status.Error(codes.Unknown, "connection lost") }),
		Options{Prefix: servertest.Prefix(t) + "/"})
	if err != nil {
		t.Fatal(err)
	}
	if err := acquire(t, l).Release(t.Context()); err != nil {
		t.Errorf("release: %v", err)
	}
}

// Who waits has a lease too, and is of no use at the front without it.
func TestAWaiterWhoseLeaseEndedIsNotLetIn(t *testing.T) {
	endpoints := servertest.Etcd(t)
	prefix := servertest.Prefix(t) + "/"
	held := acquire(t, open(t, endpoints, Options{Prefix: prefix}))
	waiter := open(t, endpoints, Options{Prefix: prefix, TTL: 2 * time.Second, Wait: patience})
	failed := make(chan error, 1)
	go func() {
		_, err := waiter.Acquire(t.Context(), "item")
		failed <- err
	}()
	client := connect(t, endpoints)
	for deadline := time.Now().Add(patience); len(entries(t, client, prefix)) < 2; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("nobody waits")
		}
	}
	last, err := client.Get(t.Context(), prefix, clientv3.WithLastCreate()...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Revoke(t.Context(), clientv3.LeaseID(last.Kvs[0].Lease)); err != nil {
		t.Fatal(err)
	}
	locktest.Is(t, <-failed, lock.ErrUnavailable)
	if err := held.Release(t.Context()); err != nil {
		t.Errorf("release: %v", err)
	}
}

// A watch can't be made while etcd is away, and is of no use to who has lost its
// lease: neither is waited for to the end of the wait.
func TestAWatchHoldsUpAWaiter(t *testing.T) {
	server := servertest.EtcdServer(t)
	wait := func(timeout time.Duration, fault func(*lease)) {
		held := acquire(t, open(t, []string{server.Addr()}, Options{Timeout: timeout, Wait: patience})).(*lease)
		fault(held)
		locktest.Bounded(t, patience, "the wait", func() {
			if err := held.awaitEnd(t.Context(), held.entry, held.fence, time.Now().Add(time.Hour)); err != nil {
				t.Error(err)
			}
		})
		_ = held.Release(t.Context())
	}
	wait(time.Hour, func(l *lease) { l.Lose() })
	wait(time.Second, func(*lease) { server.Kill() })
}

// The server has the last word on the TTL.
func TestTheGrantedTTLCounts(t *testing.T) {
	endpoints := servertest.Etcd(t)
	l := open(t, endpoints, Options{TTL: time.Second, Prefix: servertest.Prefix(t) + "/"}) // less than etcd allows by default
	held := acquire(t, l).(*lease)
	defer held.Release(t.Context())
	reply, err := connect(t, endpoints).TimeToLive(t.Context(), held.id)
	if err != nil {
		t.Fatal(err)
	}
	if granted := time.Duration(reply.GrantedTTL) * time.Second; held.ttl != granted {
		t.Errorf("taken for granted: %v, granted: %v", held.ttl, granted)
	}
}

// A name within another's isn't a place in its line.
func TestKeysWithSlashesAreKeysOfTheirOwn(t *testing.T) {
	l := open(t, servertest.Etcd(t), Options{Prefix: servertest.Prefix(t) + "/", Wait: lock.TryOnce})
	for _, key := range []string{"a/b", "a", "a/b/c"} {
		lease, err := l.Acquire(t.Context(), key)
		if err != nil {
			t.Fatal(key, err)
		}
		defer lease.Release(t.Context())
	}
}

func TestWrongOptionsAreRefused(t *testing.T) {
	for name, o := range map[string]Options{
		"TTL": {TTL: -time.Second}, "long TTL": {TTL: 2 * time.Hour}, "Drift": {TTL: 4 * time.Second, Drift: 2 * time.Second}, "Timeout": {Timeout: -1},
	} {
		if _, err := Dial([]string{"127.0.0.1:1"}, o); err == nil {
			t.Errorf("%s is allowed", name)
		}
	}
	if _, err := New(nil, Options{}); err == nil {
		t.Error("no client is allowed")
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

// faulty is a client whose first call of a method is carried out, and then
// ends as fault says.
func faulty(t testing.TB, endpoints []string, method string, fault func() error) *clientv3.Client {
	t.Helper()
	var once sync.Once
	intercept := func(ctx context.Context, full string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		err := invoke(ctx, full, req, reply, conn, opts...)
		if path.Base(full) == method && err == nil {
			once.Do(func() { err = fault() })
		}
		return err
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints, Logger: zap.NewNop(), DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(intercept)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}
