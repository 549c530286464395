// Package servertest gives tests the servers that they need. Whoever asks gets
// a real one where there is one: that of the test run (program testrun), named
// by the environment, else one of the test process's own, started when it is
// first wanted. Where none can be had the test gets an embedded stand-in, is
// told so in its log, and is counted. For etcd and ZooKeeper there are none:
// without a real one the test is skipped, and counted as such.
//
// FLASHSALE_TEST_REDIS (addresses), _SQL (the DSN of a server), _KAFKA (brokers),
// _ETCD (endpoints) and _ZOOKEEPER (addresses) name servers to use; the value
// "embedded" asks for the stand-in, or says that there is none.
package servertest

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"flashsale/internal/servers"
)

// The environment by which a test run and its tests talk to each other.
const (
	EnvRedis     = "FLASHSALE_TEST_REDIS"
	EnvSQL       = "FLASHSALE_TEST_SQL"
	EnvKafka     = "FLASHSALE_TEST_KAFKA"
	EnvEtcd      = "FLASHSALE_TEST_ETCD"
	EnvZooKeeper = "FLASHSALE_TEST_ZOOKEEPER"

	// EnvTally names a file to which each use of a server adds a line: name
	// of the server, "real" or "stand-in" or "skipped", test binary, test.
	EnvTally = "FLASHSALE_TEST_TALLY"

	// Embedded as the value of one of these asks for the stand-in.
	Embedded = "embedded"
)

// Redis is the address of a Redis that other tests use at the same time: write
// under a Prefix of your own, and flush nothing.
func Redis(t testing.TB) string {
	t.Helper()
	return use(t, &sharedRedis).Addr()
}

// RealRedis is Redis for tests that are about what a stand-in lacks: without a real
// one they are skipped.
func RealRedis(t testing.TB) string {
	t.Helper()
	if given := os.Getenv(EnvRedis); given == "" || given == Embedded {
		skipWithout(t, redisKind)
	}
	return Redis(t)
}

// RedisIsReal says whether Redis is a real one.
func RedisIsReal(t testing.TB) bool {
	t.Helper()
	return use(t, &sharedRedis).Real()
}

// Kafka is the list of brokers of a Kafka that other tests use at the same
// time: name topics and groups by a Prefix of your own.
func Kafka(t testing.TB) []string {
	t.Helper()
	return strings.Split(use(t, &sharedKafka).Addr(), ",")
}

// Etcd is the list of endpoints of an etcd that other tests use at the same
// time: write under a Prefix of your own. Without etcd the test is skipped.
func Etcd(t testing.TB) []string {
	t.Helper()
	return strings.Split(use(t, &sharedEtcd).Addr(), ",")
}

// EtcdIfAny is Etcd for a test that can do something without it: nil then, and
// the test counts as skipped.
func EtcdIfAny(t testing.TB) []string {
	t.Helper()
	if !present(t, &sharedEtcd) {
		return nil
	}
	return Etcd(t)
}

// ZooKeeper is the same for ZooKeeper.
func ZooKeeper(t testing.TB) []string {
	t.Helper()
	return strings.Split(use(t, &sharedZooKeeper).Addr(), ",")
}

// Prefix is a name that no other test has: lower case letters and digits, fit
// for FLASHSALE_PREFIX.
func Prefix(t testing.TB) string {
	t.Helper()
	return "t" + strings.ToLower(rand.Text()[:12])
}

// RedisServer is a Redis of the test's own, running, which it may stop, kill
// and start again.
func RedisServer(t testing.TB) servers.Server {
	t.Helper()
	return own(t, redisKind)
}

// KafkaServer is a Kafka of the test's own; see RedisServer.
func KafkaServer(t testing.TB) servers.Server {
	t.Helper()
	return own(t, kafkaKind)
}

// SQLServer is a database server of the test's own; see RedisServer. There is
// no stand-in for a server that can be stopped: without one the test is skipped.
func SQLServer(t testing.TB) servers.Database {
	t.Helper()
	skipWithout(t, sqlKind)
	return own(t, sqlKind).(servers.Database)
}

// EtcdServer is an etcd of the test's own; see SQLServer.
func EtcdServer(t testing.TB) servers.Server {
	t.Helper()
	skipWithout(t, etcdKind)
	return own(t, etcdKind)
}

// ZooKeeperServer is a ZooKeeper of the test's own; see SQLServer.
func ZooKeeperServer(t testing.TB) servers.Server {
	t.Helper()
	skipWithout(t, zooKeeperKind)
	return own(t, zooKeeperKind)
}

// ZooKeeperIfAny is the same for ZooKeeper.
func ZooKeeperIfAny(t testing.TB) []string {
	t.Helper()
	if !present(t, &sharedZooKeeper) {
		return nil
	}
	return ZooKeeper(t)
}

func present(t testing.TB, s *shared) bool {
	t.Helper()
	if addr := os.Getenv(s.kind.env); addr != "" && addr != Embedded {
		return true
	}
	missing := s.kind.missing()
	if missing != nil {
		t.Logf("LEFT OUT: what needs %s (%v; `make deps` installs it)", s.kind.name, missing)
		record(t, s.kind.name, "skipped")
	}
	return missing == nil
}

// skipWithout skips a test that has no use for a stand-in.
func skipWithout(t testing.TB, k kind) {
	t.Helper()
	if missing := k.missing(); missing != nil {
		record(t, k.name, "skipped")
		t.Skipf("needs a real %s server (%v; `make deps` installs it)", k.name, missing)
	}
}

// kind is what the stores have in common here.
type kind struct {
	name, env string
	given     func(addr string) servers.Server
	available func() error
	real      func(dir string) servers.Server
	standIn   func(dir string) servers.Server // nil: there is none
}

var (
	redisKind = kind{
		name:      servers.RedisName,
		env:       EnvRedis,
		given:     func(addr string) servers.Server { return servers.Given(servers.RedisName, addr) },
		available: servers.RedisAvailable,
		real:      servers.Redis,
		standIn:   func(string) servers.Server { return servers.EmbeddedRedis() },
	}
	kafkaKind = kind{
		name:      servers.KafkaName,
		env:       EnvKafka,
		given:     func(addr string) servers.Server { return servers.Given(servers.KafkaName, addr) },
		available: servers.KafkaAvailable,
		real:      servers.Kafka,
		standIn:   servers.EmbeddedKafka,
	}
	sqlKind = kind{
		name:      servers.SQLName,
		env:       EnvSQL,
		given:     func(dsn string) servers.Server { return servers.GivenSQL(dsn) },
		available: servers.MariaDBAvailable,
		real:      func(dir string) servers.Server { return servers.MariaDB(dir) },
		standIn: func(dir string) servers.Server {
			return servers.SQLite(filepath.Join(dir, "flashsale.db"))
		},
	}
	etcdKind = kind{
		name:      servers.EtcdName,
		env:       EnvEtcd,
		given:     func(addr string) servers.Server { return servers.Given(servers.EtcdName, addr) },
		available: servers.EtcdAvailable,
		real:      servers.Etcd,
	}
	zooKeeperKind = kind{
		name:      servers.ZooKeeperName,
		env:       EnvZooKeeper,
		given:     func(addr string) servers.Server { return servers.Given(servers.ZooKeeperName, addr) },
		available: servers.ZooKeeperAvailable,
		real:      servers.ZooKeeper,
	}
)

// missing says why no real server can be started, nil if one can.
func (k kind) missing() error {
	if os.Getenv(k.env) == Embedded {
		return fmt.Errorf("%s=%s", k.env, Embedded)
	}
	return k.available()
}

// start brings one up in dir. The error says why it is only a stand-in.
func (k kind) start(dir string) (servers.Server, error) {
	missing := k.missing()
	if missing == nil {
		server := k.real(dir)
		if missing = server.Start(context.Background()); missing == nil {
			return server, nil
		}
	}
	if k.standIn == nil {
		return nil, missing
	}
	dir = filepath.Join(dir, "stand-in")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	server := k.standIn(dir)
	if err := server.Start(context.Background()); err != nil {
		return nil, err
	}
	return server, missing
}

func own(t testing.TB, k kind) servers.Server {
	t.Helper()
	server, missing := k.start(tempDir(t))
	if server == nil {
		t.Fatal(missing)
	}
	t.Cleanup(func() { server.Stop(context.Background()) })
	announce(t, server, missing)
	return server
}

// tempDir is a short t.TempDir whose removal cannot fail the test.
func tempDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "flashsale-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// shared is one server for all tests of this process.
type shared struct {
	kind    kind
	once    sync.Once
	server  servers.Server
	missing error
}

var (
	sharedRedis     = shared{kind: redisKind}
	sharedKafka     = shared{kind: kafkaKind}
	sharedSQL       = shared{kind: sqlKind}
	sharedEtcd      = shared{kind: etcdKind}
	sharedZooKeeper = shared{kind: zooKeeperKind}
)

func use(t testing.TB, s *shared) servers.Server {
	t.Helper()
	if addr := os.Getenv(s.kind.env); s.kind.standIn == nil && (addr == "" || addr == Embedded) {
		skipWithout(t, s.kind)
	}
	s.once.Do(func() {
		if addr := os.Getenv(s.kind.env); addr != "" && addr != Embedded {
			server := s.kind.given(addr)
			if s.missing = server.Start(context.Background()); s.missing == nil {
				s.server = server
			}
			return
		}
		dir, err := processDir()
		if err != nil {
			s.missing = err
			return
		}
		s.server, s.missing = s.kind.start(filepath.Join(dir, s.kind.name))
	})
	if s.server == nil {
		t.Fatal(s.missing)
	}
	announce(t, s.server, s.missing)
	return s.server
}

// announce counts, and tells the test when it has a stand-in.
func announce(t testing.TB, server servers.Server, missing error) {
	t.Helper()
	if server.Real() {
		record(t, server.Name(), "real")
		return
	}
	t.Logf("STAND-IN %s in place of a real %s: %v", server.Version(), server.Name(), missing)
	record(t, server.Name(), "stand-in")
}

func record(t testing.TB, name, what string) {
	t.Helper()
	path := os.Getenv(EnvTally)
	if path == "" {
		return
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal("servertest: tally:", err)
	}
	defer f.Close()
	line := strings.Join([]string{name, what, filepath.Base(os.Args[0]), t.Name()}, "\t") + "\n"
	if _, err := f.WriteString(line); err != nil {
		t.Fatal("servertest: tally:", err)
	}
}
