package app

import (
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/v9"
)

// Program is one that reads the settings.
type Program struct {
	Name    string
	Summary string
	uses    func(setting) bool
}

// The two programs. The environment is meant to be shared: a variable that only
// the other one uses is no mistake.
var (
	APIProgram = Program{
		"api", "serves the HTTP interface and relays what was sold from Redis to Kafka", func(s setting) bool { return true },
	}
	SyncerProgram = Program{
		"syncer", "settles what was sold: from Kafka into MySQL", func(s setting) bool { return s.syncer },
	}
)

// setting is one value of the configuration.
type setting struct {
	variable string // without FLASHSALE_
	initial  string
	doc      string
	allowed  string
	secrecy  secrecy
	syncer   bool // the syncer uses it as well
	toggle   bool // the flag alone means true
	set      func(c *Config, value string) bool
}

// secrecy is which values a complaint must not repeat.
type secrecy int

const (
	public   secrecy = iota
	password         // those with credentials, which stand before an @
	secret           // all
)

// Name of the environment variable.
func (s setting) env() string { return envPrefix + s.variable }

// Name of the flag.
func (s setting) flag() string { return strings.ToLower(strings.ReplaceAll(s.variable, "_", "-")) }

const envPrefix = "FLASHSALE_"

var prefixPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`)

// settings is every value there is, in the order of --help.
var settings = []setting{
	{variable: "LISTEN", initial: "127.0.0.1:8080", doc: "address of the HTTP interface", allowed: "host:port; port 0 is a free one",
		set: func(c *Config, v string) bool { c.Listen = v; return isListen(v) }},
	{variable: "ADMIN_LISTEN", initial: "127.0.0.1:9090", doc: "address of /metrics, /healthz and /debug/pprof; of a syncer /readyz too", allowed: "host:port, or off", syncer: true,
		set: func(c *Config, v string) bool {
			if v == "off" {
				return true
			}
			c.AdminListen = v
			return isListen(v)
		}},
	{variable: "REDIS_ADDRS", initial: "127.0.0.1:6379", doc: "where Redis is", allowed: "host:port, or redis://[user:password@]host:port[/number]; several host:port, with commas, are a cluster", secrecy: password,
		set: func(c *Config, v string) bool { c.RedisAddrs = list(v); return isRedis(c.RedisAddrs) }},
	{variable: "KAFKA_BROKERS", initial: "127.0.0.1:9092", doc: "where Kafka is", allowed: "host:port, several with commas", syncer: true,
		set: func(c *Config, v string) bool { c.KafkaBrokers = list(v); return all(c.KafkaBrokers, isHostPort) }},
	{variable: "MYSQL_DSN", initial: "flashsale:flashsale@tcp(127.0.0.1:3306)/flashsale", doc: "where MySQL is", allowed: "user:password@tcp(host:port)/database", secrecy: password, syncer: true,
		set: func(c *Config, v string) bool { c.MySQLDSN = v; return isMySQL(v) }},
	{variable: "REDLOCK_ADDRS", doc: "independent Redis servers for the variant redlock; without them it is not offered", allowed: "at least three different host:port or redis:// URLs, with commas; five are usual", secrecy: password,
		set: func(c *Config, v string) bool { c.RedlockAddrs = list(v); return isRedlock(c.RedlockAddrs) }},
	{variable: "ETCD_ENDPOINTS", doc: "where etcd is, for the variant etcd; without it that is not offered", allowed: "host:port, several with commas",
		set: func(c *Config, v string) bool { c.EtcdEndpoints = list(v); return all(c.EtcdEndpoints, isHostPort) }},
	{variable: "ZOOKEEPER_ADDRS", doc: "where ZooKeeper is, for the variant zookeeper; without it that is not offered", allowed: "host:port, several with commas",
		set: func(c *Config, v string) bool { c.ZooKeeperAddrs = list(v); return all(c.ZooKeeperAddrs, isHostPort) }},
	{variable: "ADMIN_TOKEN", doc: "token of the routes that change sales; a random one is made and printed when there is none", allowed: "8 to 256 printable ASCII characters without spaces", secrecy: secret,
		set: func(c *Config, v string) bool { c.AdminToken = v; return tokenPattern.MatchString(v) }},
	{variable: "LOCK_TTL", initial: "30s", doc: "lease of a sale's lock", allowed: "a duration from 100ms to 10m",
		set: func(c *Config, v string) bool { return between(&c.LockTTL, v, 100*time.Millisecond, 10*time.Minute) }},
	{variable: "LOCK_WAIT", initial: "2s", doc: "how long a purchase waits for the lock", allowed: "a duration from 1ms to 1m",
		set: func(c *Config, v string) bool { return between(&c.LockWait, v, time.Millisecond, time.Minute) }},
	{variable: "ALLOW_BROKEN_LOCKS", initial: "false", doc: "offer the locks that are broken on purpose, for lessons", allowed: "true or false", toggle: true,
		set: func(c *Config, v string) (ok bool) {
			c.AllowBrokenLocks = v == "true"
			return v == "true" || v == "false"
		}},
	{variable: "PREFIX", initial: "fs", doc: "name of the installation, in Redis keys and Kafka topics", allowed: "1 to 32 of a-z 0-9 -, the first not -", syncer: true,
		set: func(c *Config, v string) bool { c.Prefix = v; return prefixPattern.MatchString(v) }},
	{variable: "SHUTDOWN_TIMEOUT", initial: "20s", doc: "how long the end of the process may take", allowed: "a duration from 1s to 10m", syncer: true,
		set: func(c *Config, v string) bool { return between(&c.ShutdownTimeout, v, time.Second, 10*time.Minute) }},
	{variable: "LOG_FORMAT", initial: "json", doc: "form of the log on stderr", allowed: "json or text", syncer: true,
		set: func(c *Config, v string) bool { c.LogFormat = v; return v == "json" || v == "text" }},
	{variable: "LOG_LEVEL", initial: "info", doc: "least level that is logged; debug has every request", allowed: "debug, info, warn or error", syncer: true,
		set: func(c *Config, v string) bool { return isLevel(v) && c.LogLevel.UnmarshalText([]byte(v)) == nil }},
}

var tokenPattern = regexp.MustCompile(`^[!-~]{8,256}$`)

// redact hides a secret, of which a complaint still has to say that it is there.
func (s setting) redact(value string) string {
	if s.secrecy == secret || s.secrecy == password && strings.Contains(value, "@") {
		return fmt.Sprintf("(hidden, %d characters)", len(value))
	}
	return strconv.Quote(value)
}

func list(value string) []string {
	parts := strings.Split(value, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}

func all(values []string, ok func(string) bool) bool {
	for _, v := range values {
		if !ok(v) {
			return false
		}
	}
	return len(values) > 0
}

func isListen(v string) bool {
	_, port, err := net.SplitHostPort(v)
	return err == nil && isPort(port, 0)
}

func isHostPort(v string) bool {
	host, port, err := net.SplitHostPort(v)
	return err == nil && host != "" && !strings.ContainsAny(host, " /@") && isPort(port, 1)
}

func isPort(v string, least int) bool {
	n, err := strconv.Atoi(v)
	return err == nil && n >= least && n <= 65535
}

func isRedis(addrs []string) bool {
	if len(addrs) == 1 {
		if u, err := url.Parse(addrs[0]); err == nil && (u.Scheme == "redis" || u.Scheme == "rediss") && u.Opaque == "" {
			o, err := redis.ParseURL(addrs[0])
			return err == nil && u.Host != "" && isHostPort(o.Addr)
		}
	}
	return all(addrs, isHostPort)
}

// isRedlock wants servers that can outvote one that fails.
func isRedlock(addrs []string) bool {
	different := slices.Compact(slices.Sorted(slices.Values(addrs)))
	return len(addrs) >= 3 && len(different) == len(addrs) && all(addrs, func(addr string) bool { return isRedis([]string{addr}) })
}

// isMySQL refuses stand-ins too: they are for tests and the demo.
func isMySQL(dsn string) bool {
	c, err := mysql.ParseDSN(dsn)
	return err == nil && c.DBName != "" && !strings.HasPrefix(dsn, "sqlite:")
}

func isLevel(v string) bool {
	switch strings.ToLower(v) {
	case "debug", "info", "warn", "error":
		return true
	}
	return false
}

func between(to *time.Duration, value string, low, high time.Duration) bool {
	d, err := time.ParseDuration(value)
	*to = d
	return err == nil && d >= low && d <= high
}
