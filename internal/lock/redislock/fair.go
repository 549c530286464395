package redislock

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"flashsale/internal/lock"
)

// Fair is Watchdog with one queue for all processes, in Redis: the lock is
// granted in the order in which its waiters first asked. Each waiter has a place
// that it renews, and a release wakes the first alone.
//
// Protects against:  all that Watchdog does, and a waiter that is overtaken again and again; waiters that died in the queue.
// Still fails when:  as Watchdog. A waiter that dies while it is the first holds up the others for PlaceTTL; one that is paused for so long loses its place.
// Fixed by:          the fence, checked where the guarded value is written.
type Fair struct {
	*store
	listener *listener
}

// FairOptions are the options of NewFair; the zero value is the default.
type FairOptions struct {
	Options // PollMin and PollMax: 0 = 100 and 200 ms

	// PlaceTTL is how long a waiter keeps its place in the queue without asking
	// again, which it does every PollMax; 0 = 2 s, or ten times PollMax if that
	// is longer. Allowed: twice PollMax or more.
	PlaceTTL time.Duration
}

const minPlaceTTL = 2 * time.Second

// NewFair makes a Fair on one Redis, or Redis Cluster. The client should be as
// for NewSetNX. Close it when no one acquires any more.
//
// Two more keys, named as the lock with ":queue" and ":places" behind it, exist
// while somebody waits.
func NewFair(client redis.UniversalClient, options FairOptions) (*Fair, error) {
	store, err := newStore(client, options.Options, polls{min: 100 * time.Millisecond, max: 200 * time.Millisecond})
	if err != nil {
		return nil, err
	}
	places := options.PlaceTTL
	if places == 0 {
		places = max(minPlaceTTL, 10*store.PollMax)
	}
	if places < 2*store.PollMax {
		return nil, fmt.Errorf("redislock: option PlaceTTL is %v, allowed: at least twice PollMax, %v", places, 2*store.PollMax)
	}
	store.announces = true
	store.speak(func(t tokens) protocol { return queue{tokens: t, placeTTL: places, patient: store.Wait > 0} })
	return &Fair{store: store, listener: newListener(client)}, nil
}

var _ lock.Locker = (*Fair)(nil)

// Acquire takes a place in the queue and waits for its turn.
func (f *Fair) Acquire(ctx context.Context, key string) (lock.Lease, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c := f.claim(key)
	won, err := c.win(ctx, time.Now().Add(f.Wait), f.listener)
	if err != nil {
		return nil, err
	}
	return watch(ctx, newLease(c, won, nil), func() {}), nil
}

// Close ends the connection that waiters share. Leases stay as they are;
// waiters that are left poll.
func (f *Fair) Close() error {
	f.listener.close()
	return nil
}

var (
	//go:embed fair.lua
	fairSource string
	//go:embed fair_release.lua
	fairReleaseSource string

	fairAcquireScript = redis.NewScript(fairSource + acquireSource)
	fairReleaseScript = redis.NewScript(fairReleaseSource)
)

// queue is the protocol of a lock with a queue: tokens, but for whose turn it is.
type queue struct {
	tokens
	placeTTL time.Duration
	patient  bool // who isn't ready to wait takes no place
}

var _ protocol = queue{}

func (q queue) acquire(ctx context.Context, lockKey, fenceKey, token string) (answer, error) {
	reply, err := parseAnswer(fairAcquireScript.Run(ctx, q.client, []string{lockKey, fenceKey, lockKey + ":queue", lockKey + ":places"},
		token, q.ttl.Milliseconds(), fenceTTL.Milliseconds(), q.placeTTL.Milliseconds(), q.patient).Result())
	reply.placed = err == nil && !reply.granted && q.patient
	return reply, err
}

func (q queue) remove(ctx context.Context, lockKey, token, channel string) (bool, error) {
	return fairReleaseScript.Run(ctx, q.client, []string{lockKey, lockKey + ":queue", lockKey + ":places"}, token, channel).Bool()
}
