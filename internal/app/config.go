package app

import (
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"time"

	"flashsale/internal/rediskey"
)

// Config is what the API and the syncer can be told; [ParseConfig] reads it
// from variables and flags. Addresses and the token are needed by the program
// that uses them; the zero value of the rest stands for its default.
type Config struct {
	Listen string // host:port of the HTTP interface; port 0 is a free one
	// Listener, when there is one, is open already and serves in place of Listen;
	// it belongs to NewAPI, which closes it when there is no API.
	Listener    net.Listener
	AdminListen string // host:port of metrics and pprof; empty: none

	RedisAddrs   []string // one host:port or redis:// URL; several host:port are a Redis Cluster
	KafkaBrokers []string // host:port
	MySQLDSN     string   // user:password@tcp(host:port)/database, or sqlite:PATH

	// RedlockAddrs are the nodes of the variant redlock, which know nothing of each
	// other, at least three; empty: it is not offered.
	RedlockAddrs []string // host:port or redis:// URL

	// Where etcd and ZooKeeper are, host:port; empty: their variants are not offered.
	EtcdEndpoints  []string
	ZooKeeperAddrs []string

	AdminToken string // for the routes that change sales; NewAPI wants one

	LockTTL  time.Duration // lease of a sale's lock
	LockWait time.Duration // how long a purchase waits for it
	// PollMin and PollMax bound the pause between two attempts at a lock that is
	// held; 0: the variant's own. Only a stand-in for Redis needs longer ones.
	PollMin, PollMax time.Duration

	// AllowBrokenLocks offers the locks that are broken on purpose.
	AllowBrokenLocks bool

	// RedisStandIn says that Redis is a stand-in, which lacks what some variants need.
	RedisStandIn bool

	// RedisTimeout bounds each exchange with Redis; 0: 1.5 s. As above.
	RedisTimeout time.Duration

	// Uncombined gives each purchase an acquisition and a deduction of its own,
	// for measuring what combining them gains.
	Uncombined bool

	Prefix string // installation: names the Redis keys and the Kafka topics

	ShutdownTimeout time.Duration // for requests in progress, and then the relay, at the end

	LogFormat string // json or text
	LogLevel  slog.Level
}

// wants is the error of what c lacks, by the name of each needed value.
func wants(program string, needed map[string]bool) error {
	var missing []string
	for name, there := range needed {
		if !there {
			missing = append(missing, name)
		}
	}
	if missing == nil {
		return nil
	}
	slices.Sort(missing)
	return fmt.Errorf("app: the %s needs %s", program, strings.Join(missing, ", "))
}

func (c Config) withDefaults() Config {
	if c.LockTTL == 0 {
		c.LockTTL = 30 * time.Second
	}
	if c.LockWait == 0 {
		c.LockWait = 2 * time.Second
	}
	if c.Prefix == "" {
		c.Prefix = rediskey.DefaultPrefix
	}
	if c.ShutdownTimeout == 0 {
		c.ShutdownTimeout = 20 * time.Second
	}
	return c
}
