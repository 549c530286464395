// Package servers brings up the stores that flashsale needs, for the demo, the
// tests and the lab: real ones as child processes, embedded stand-ins within
// this process that speak the same wire protocols, or servers that somebody
// else runs. All of them look alike from outside.
//
//	            embedded                 child process            somebody else's
//	redis       EmbeddedRedis            Redis                    Given
//	kafka       EmbeddedKafka            Kafka                    Given
//	sql         SQLite                   MariaDB                  GivenSQL
//	etcd        -                        Etcd                     Given
//	zookeeper   -                        ZooKeeper                Given
//
// Child processes listen on the loopback interface alone, on a free port, keep
// their files in the directory that they are given, and die with this process.
// They have no passwords: they are for one machine and for one run.
package servers

import "context"

// The names of the stores, as JSON results and messages call them.
const (
	RedisName     = "redis"
	KafkaName     = "kafka"
	SQLName       = "sql"
	EtcdName      = "etcd"
	ZooKeeperName = "zookeeper"
)

// Server is one store. Start, Stop and Kill are called one after the other, not
// concurrently; the other methods are safe at any time.
type Server interface {
	// Name is redis, kafka, sql, etcd or zookeeper.
	Name() string

	// Version is product and version, like "redis-server 7.0.15". A server
	// tells it when it is asked, so it is empty before the first Start.
	Version() string

	// Real is false for an embedded stand-in.
	Real() bool

	// Start returns once the server has answered in its own protocol. After a
	// Stop or Kill it comes back under the same address, with its data. When a
	// child process does not come up the error holds the end of its log.
	Start(ctx context.Context) error

	// Addr is host:port. It stays the same from the first Start on.
	Addr() string

	// Stop ends the server in order. A server that does not run is left alone.
	Stop(ctx context.Context) error

	// Kill ends it at once: SIGKILL for a child process, closed connections
	// for an embedded one. It has ended when Kill returns.
	Kill()
}

// Database is a Server with SQL.
type Database interface {
	Server

	// DSN names an existing database on it, as sqlstock.Open takes it: a
	// go-sql-driver/mysql DSN, or sqlite:<path>.
	DSN() string
}
