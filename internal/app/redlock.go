package app

import (
	"errors"
	"io"

	"github.com/redis/go-redis/v9"

	"flashsale/internal/lock"
	"flashsale/internal/lock/redislock"
)

// redlockPool is enough for a node: of one process, one caller a sale asks.
const redlockPool = 16

// newRedlock connects to nodes of its own: a quorum means nothing when the
// servers depend on each other.
func newRedlock(b backends) (lock.Locker, error) {
	options := redislock.RedlockOptions{Options: b.locks}
	if b.config.RedisStandIn {
		options.NodeTimeout = b.locks.TTL / 4 // a script takes it long, on a busy machine
	}
	var nodes []redis.UniversalClient
	closers := closeAll{}
	for _, addr := range b.config.RedlockAddrs {
		node, err := newRedis([]string{addr}, redlockPool, b.config.RedisTimeout)
		if err != nil {
			return nil, errors.Join(err, closers.Close())
		}
		nodes, closers = append(nodes, node), append(closers, node)
	}
	locker, err := redislock.NewRedlock(nodes, options)
	if err != nil {
		return nil, errors.Join(err, closers.Close())
	}
	return &redlock{locker, append(closeAll{locker}, closers...)}, nil
}

// redlock is a Redlock that closes its clients too.
type redlock struct {
	lock.Locker
	closers closeAll
}

func (r *redlock) Close() error { return r.closers.Close() }

type closeAll []io.Closer

func (c closeAll) Close() error {
	var errs []error
	for _, closer := range c {
		errs = append(errs, closer.Close())
	}
	return errors.Join(errs...)
}
