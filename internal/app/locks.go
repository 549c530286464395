package app

import (
	"flashsale/internal/lock"
	"flashsale/internal/lock/etcdlock"
	"flashsale/internal/lock/mysqllock"
	"flashsale/internal/lock/zklock"
)

// newLocal is right as long as there is one API process. Its leases have no
// fence, since another process would count its own.
func newLocal(b backends) (lock.Locker, error) {
	return lock.NewLocal(lock.LocalOptions{Wait: b.config.LockWait, NoFence: true}), nil
}

// newEtcd rounds the TTL up to seconds: etcd knows no shorter unit.
func newEtcd(b backends) (lock.Locker, error) {
	return etcdlock.Dial(b.config.EtcdEndpoints, etcdlock.Options{
		TTL: b.config.LockTTL, Wait: b.config.LockWait, Prefix: b.config.Prefix + "/lock/",
	})
}

func newZooKeeper(b backends) (lock.Locker, error) {
	return zklock.Dial(b.config.ZooKeeperAddrs, zklock.Options{
		TTL: max(b.config.LockTTL, zklock.MinTTL), Wait: b.config.LockWait, Root: "/" + b.config.Prefix + "/lock",
	})
}

// newMySQLRow takes connections beside the ledger's: each lease has one to itself.
func newMySQLRow(b backends) (lock.Locker, error) {
	return mysqllock.Open(b.config.MySQLDSN, mysqllock.Options{
		TTL: b.config.LockTTL, Wait: b.config.LockWait, Prefix: b.config.Prefix + ":",
	})
}
