package redislock

import (
	"context"

	"github.com/redis/go-redis/v9"

	"flashsale/internal/lock"
)

// SetNXBare is SETNX and DEL, without expiry and without a token. It is broken
// on purpose.
//
// Protects against:  several processes, as long as none of them crashes or loses a reply.
// Still fails when:  the holder crashes: the lock is stuck for ever. Whoever calls DEL frees it, too.
// Fixed by:          an expiry: SetNXExpire, which isn't quite enough.
type SetNXBare struct{ *store }

// NewSetNXBare makes a SetNXBare; the client should be as for NewSetNX.
func NewSetNXBare(client redis.UniversalClient, options Options) (*SetNXBare, error) {
	store, err := newStore(client, options, pollOnly)
	if err != nil {
		return nil, err
	}
	return &SetNXBare{store}, nil
}

var _ lock.Locker = (*SetNXBare)(nil)

// Acquire polls until the lock is granted or the wait is over.
func (s *SetNXBare) Acquire(ctx context.Context, key string) (lock.Lease, error) {
	lockKey, _ := s.Keys(key)
	drop := func(ctx context.Context) error { return s.delete(ctx, lockKey) }
	if err := s.takeBy(ctx, key, lockKey, s.setNX, drop); err != nil {
		return nil, err
	}
	return &brokenLease{key: key, drop: drop}, nil
}

// setNX is the first half of the fault: who dies now leaves the lock behind.
func (s *store) setNX(ctx context.Context, lockKey string) (bool, error) {
	return s.client.Do(ctx, "SETNX", lockKey, "held").Bool()
}
