package redislock

import (
	"context"

	"github.com/redis/go-redis/v9"

	"flashsale/internal/lock"
)

// SetNXExpire is SETNX, then the expiry as a second command, and DEL. It is
// broken on purpose.
//
// Protects against:  several processes; a holder that crashes while it works.
// Still fails when:  the holder crashes between the two commands: the lock is stuck for ever.
// Fixed by:          SET NX PX, one command: SetNXGetDel, which releases wrongly, and SetNX.
type SetNXExpire struct{ *store }

// NewSetNXExpire makes a SetNXExpire; the client should be as for NewSetNX.
func NewSetNXExpire(client redis.UniversalClient, options Options) (*SetNXExpire, error) {
	store, err := newStore(client, options, pollOnly)
	if err != nil {
		return nil, err
	}
	return &SetNXExpire{store}, nil
}

var _ lock.Locker = (*SetNXExpire)(nil)

// Acquire polls until the lock is granted or the wait is over.
func (s *SetNXExpire) Acquire(ctx context.Context, key string) (lock.Lease, error) {
	lockKey, _ := s.Keys(key)
	drop := func(ctx context.Context) error { return s.delete(ctx, lockKey) }
	if err := s.takeBy(ctx, key, lockKey, s.setNXThenExpire, drop); err != nil {
		return nil, err
	}
	return &brokenLease{key: key, drop: drop}, nil
}

// setNXThenExpire has the fault in its middle. It makes up for an expiry that
// fails; for a process that ends there, nothing can.
func (s *SetNXExpire) setNXThenExpire(ctx context.Context, lockKey string) (bool, error) {
	taken, err := s.setNX(ctx, lockKey)
	if !taken || err != nil {
		return false, err
	}
	if err := s.client.PExpire(ctx, lockKey, s.TTL).Err(); err != nil {
		_ = s.delete(ctx, lockKey)
		return false, err
	}
	return true, nil
}
