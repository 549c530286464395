package app

import "strings"

// need is what not every installation has, most often a server. The zero value
// needs none.
type need struct {
	what string // as in "needs etcd"
	met  func(Config) bool
}

func (n need) metBy(c Config) bool { return n.met == nil || n.met(c) }

// What variants may need.
var (
	needsEtcd      = need{"etcd", func(c Config) bool { return len(c.EtcdEndpoints) > 0 }}
	needsZooKeeper = need{"ZooKeeper", func(c Config) bool { return len(c.ZooKeeperAddrs) > 0 }}
	needsRedlock   = need{"several independent Redis servers", func(c Config) bool { return len(c.RedlockAddrs) > 0 }}
	needsMySQL     = need{"MySQL", func(c Config) bool { return !strings.HasPrefix(c.MySQLDSN, "sqlite:") }}
	needsConsent   = need{"FLASHSALE_ALLOW_BROKEN_LOCKS=true", func(c Config) bool { return c.AllowBrokenLocks }}
	needsRealRedis = need{"redis-server", func(c Config) bool { return !c.RedisStandIn }}
)
