package redislock

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"flashsale/internal/lock"
)

// SetNX is the plain token lock: SET NX PX with a token that only the holder
// knows, a script that deletes the lock if the token is still there, and a poll
// with jitter for those who wait.
//
// Protects against:  several processes; a holder that crashes; a release by who is no longer the holder.
// Still fails when:  the work takes longer than the TTL: it is told of the loss, but loses the lock. A crowd polls unfairly.
// Fixed by:          Watchdog.
type SetNX struct{ *store }

// NewSetNX makes a SetNX on one Redis, or Redis Cluster. The client should have
// MaxRetries -1 and DialerRetries 1, since the lock repeats by itself what may
// be repeated, and ContextTimeoutEnabled, or a call may outlast its context by
// a read timeout.
func NewSetNX(client redis.UniversalClient, options Options) (*SetNX, error) {
	store, err := newStore(client, options, pollOnly)
	if err != nil {
		return nil, err
	}
	return &SetNX{store}, nil
}

var _ lock.Locker = (*SetNX)(nil)

// Acquire polls until the lock is granted or the wait is over.
func (s *SetNX) Acquire(ctx context.Context, key string) (lock.Lease, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c := s.claim(key)
	won, err := c.win(ctx, time.Now().Add(s.Wait), nil)
	if err != nil {
		return nil, err
	}
	return &setNXLease{lease: newLease(c, won, nil)}, nil
}

type setNXLease struct {
	*lease
	once sync.Once
	err  error
}

// Release deletes the lock if it is still this lease's.
func (l *setNXLease) Release(ctx context.Context) error {
	l.once.Do(func() { l.err = l.end(ctx) })
	return l.err
}
