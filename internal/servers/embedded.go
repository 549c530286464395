package servers

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"sync"

	"github.com/alicebob/miniredis/v2"
	"github.com/twmb/franz-go/pkg/kfake"
	sqlite3 "modernc.org/sqlite/lib"
)

// EmbeddedRedis is a miniredis in this process: no functions, no persistence,
// and a tenth of the speed at scripts. It keeps its data over Stop and Kill.
func EmbeddedRedis() Server {
	s := &embedded{name: RedisName, version: "miniredis " + moduleVersion("github.com/alicebob/miniredis/v2")}
	redis := miniredis.NewMiniRedis()
	redis.ClockTTL(true) // else nothing ever expires
	s.open = func(port int) error {
		redis.Lock() // its Close ends this context, and blocking commands with it, for ever
		redis.Ctx, redis.CtxCancel = context.WithCancel(context.Background())
		redis.Unlock()
		return redis.StartAddr(loopback(port))
	}
	s.close = redis.Close
	return s
}

// EmbeddedKafka is a kfake in this process. It keeps topics and group offsets in
// dir and flushes what it acknowledges. It is a stand-in, never Kafka itself.
func EmbeddedKafka(dir string) Server {
	s := &embedded{name: KafkaName, version: "kfake " + moduleVersion("github.com/twmb/franz-go/pkg/kfake")}
	var cluster *kfake.Cluster
	s.open = func(port int) (err error) {
		cluster, err = kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(port),
			kfake.DataDir(dir), kfake.SyncWrites(), kfake.GroupMinSessionTimeout(minSessionTimeout))
		return err
	}
	s.close = func() { cluster.Close() }
	return s
}

// embedded is a server within this process; killing it is closing it.
type embedded struct {
	name, version string
	open          func(port int) error
	close         func()

	mu      sync.Mutex
	port    int // 0 before the first start
	running bool
}

func (e *embedded) Name() string    { return e.name }
func (e *embedded) Version() string { return e.version }
func (e *embedded) Real() bool      { return false }

func (e *embedded) Addr() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.port == 0 {
		return ""
	}
	return loopback(e.port)
}

// Start listens before it returns, and whoever connects is served.
func (e *embedded) Start(context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.running {
		return nil
	}
	port := e.port
	for attempt := 1; ; attempt++ {
		if e.port == 0 {
			ports, err := freePorts(1)
			if err != nil {
				return err
			}
			port = ports[0]
		}
		err := e.open(port)
		if err == nil {
			e.port, e.running = port, true
			return nil
		}
		if e.port != 0 || attempt == 5 {
			return fmt.Errorf("servers: %s: %w", e.name, err)
		}
	}
}

func (e *embedded) Stop(context.Context) error {
	e.Kill()
	return nil
}

func (e *embedded) Kill() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.running {
		e.close()
		e.running = false
	}
}

// moduleVersion is the version of a module that is linked into this program.
func moduleVersion(path string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			if module.Path == path {
				return module.Version
			}
		}
	}
	return "(version unknown)"
}

// SQLite is an embedded database in the file path: there is nothing to start,
// and nothing that could be killed.
func SQLite(path string) Database { return sqlite(path) }

type sqlite string

func (s sqlite) Name() string                { return SQLName }
func (s sqlite) Version() string             { return "SQLite " + sqlite3.SQLITE_VERSION }
func (s sqlite) Real() bool                  { return false }
func (s sqlite) Addr() string                { return string(s) }
func (s sqlite) DSN() string                 { return "sqlite:" + string(s) }
func (s sqlite) Stop(context.Context) error  { return nil }
func (s sqlite) Kill()                       {}
func (s sqlite) Start(context.Context) error { return writable(string(s)) }

// writable finds out now what the first transaction would find out later.
func writable(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("servers: %s: %w", SQLName, err)
	}
	return f.Close()
}
