package servers

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

func etcdClient(t *testing.T, s Server) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{s.Addr()}, DialTimeout: 10 * time.Second, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

func putKey(t *testing.T, s Server) {
	if _, err := etcdClient(t, s).Put(t.Context(), "k", "v"); err != nil {
		t.Fatal(err)
	}
}

func readKey(t *testing.T, s Server) {
	got, err := etcdClient(t, s).Get(t.Context(), "k")
	if err != nil || got.Count != 1 || string(got.Kvs[0].Value) != "v" {
		t.Fatalf("got %v, %v", got, err)
	}
}

func zooKeeperConn(t *testing.T, s Server) *zk.Conn {
	t.Helper()
	conn, _, err := zk.Connect([]string{s.Addr()}, 10*time.Second, zk.WithLogInfo(false), zk.WithLogger(silent{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

type silent struct{}

func (silent) Printf(string, ...any) {}

func makeNode(t *testing.T, s Server) {
	if _, err := zooKeeperConn(t, s).Create("/k", []byte("v"), 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
}

func seeNode(t *testing.T, s Server) {
	if got, _, err := zooKeeperConn(t, s).Get("/k"); err != nil || string(got) != "v" {
		t.Fatalf("got %q, %v", got, err)
	}
}

func TestEtcdAndZooKeeperProbesRefuseAnothersAnswer(t *testing.T) {
	for name, test := range map[string]struct {
		missing error
		open    func(string) Server
		probe   func(addr string) error
		given   string
	}{
		"etcd": {EtcdAvailable(), Etcd, func(addr string) error { _, err := probeEtcd(t.Context(), addr, "another"); return err }, EtcdName},
		"ZooKeeper": {ZooKeeperAvailable(), ZooKeeper, func(addr string) error {
			_, err := probeZooKeeper(t.Context(), addr, "/another/data")
			return err
		}, ZooKeeperName},
	} {
		t.Run(name, func(t *testing.T) {
			if test.missing != nil {
				t.Skip(test.missing)
			}
			s := test.open(t.TempDir())
			start(t, s)
			defer s.Kill()
			if err := test.probe(s.Addr()); err == nil {
				t.Error("took another's server for the child")
			}
			given := Given(test.given, s.Addr())
			if err := given.Start(t.Context()); err != nil || given.Version() != s.Version() {
				t.Errorf("given: %q, %v", given.Version(), err)
			}
			s.Kill()
			if err := given.Start(t.Context()); err == nil {
				t.Error("a server that is away was taken for one that answers")
			}
		})
	}
}
