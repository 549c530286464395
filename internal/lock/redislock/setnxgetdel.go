package redislock

import (
	"context"
	"crypto/rand"
	"errors"

	"github.com/redis/go-redis/v9"

	"flashsale/internal/lock"
)

// SetNXGetDel is SET NX PX with a token that is compared by the client: GET,
// then DEL if it is still there. It is broken on purpose.
//
// Protects against:  several processes; a holder that crashes; most releases by who is no longer the holder.
// Still fails when:  the lock expires and changes hands between GET and DEL: the next holder's lock is deleted, and a third holds it beside that one.
// Fixed by:          comparing and deleting in one step on the server: SetNX.
type SetNXGetDel struct{ *store }

// NewSetNXGetDel makes a SetNXGetDel; the client should be as for NewSetNX.
func NewSetNXGetDel(client redis.UniversalClient, options Options) (*SetNXGetDel, error) {
	store, err := newStore(client, options, pollOnly)
	if err != nil {
		return nil, err
	}
	return &SetNXGetDel{store}, nil
}

var _ lock.Locker = (*SetNXGetDel)(nil)

// Acquire polls until the lock is granted or the wait is over.
func (s *SetNXGetDel) Acquire(ctx context.Context, key string) (lock.Lease, error) {
	lockKey, _ := s.Keys(key)
	token := rand.Text()
	set := func(ctx context.Context, lockKey string) (bool, error) {
		err := s.client.Do(ctx, "SET", lockKey, token, "NX", "PX", s.TTL.Milliseconds()).Err()
		if errors.Is(err, redis.Nil) {
			return false, nil
		}
		return err == nil, err
	}
	drop := func(ctx context.Context) error { return s.getThenDelete(ctx, lockKey, token) }
	if err := s.takeBy(ctx, key, lockKey, set, drop); err != nil {
		return nil, err
	}
	return &brokenLease{key: key, drop: drop}, nil
}

// getThenDelete has the fault in its middle: what was read there is old.
func (s *SetNXGetDel) getThenDelete(ctx context.Context, lockKey, token string) error {
	reading, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.ReleaseTimeout)
	defer cancel()
	holder, err := s.client.Get(reading, lockKey).Result()
	switch {
	case errors.Is(err, redis.Nil), err == nil && holder != token:
		return lock.ErrLost
	case err != nil:
		return lock.Unavailable(err)
	}
	return s.delete(ctx, lockKey)
}
