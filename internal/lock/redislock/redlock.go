package redislock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"flashsale/internal/lock"
)

// Redlock is a lock on several Redis servers that know nothing of each other:
// who has the same token on more than half of them, in time, holds it. It is
// extended while held, and each process has a queue, as with Watchdog.
//
// Protects against:  all that Watchdog does, and the failure of any minority of the nodes, which replication does not (a replica may not have seen the grant).
// Still fails when:  the process is paused past the TTL, and there is no fence to help; a node's clock jumps ahead; a node comes back without its data before the TTL has passed.
// Fixed by:          guarding the write itself: a condition, a unique index, or a lock whose store hands out fences (Watchdog's one Redis, etcd, ZooKeeper).
//
// Fence is 0. Each node could count its grants, but a holder learns the counters
// of its own quorum only, and those of the next one may all be smaller: the
// largest of them isn't monotone, and agreeing on one number is consensus, which
// these nodes don't do.
//
// A node that has lost its data may vote for a second holder while the first
// one's lease still runs. So a node that is started without its data, or whose
// append-only file isn't synced with each write, has to stay away for the TTL of
// the longest lease (the rule of the delayed restart). What one lease forgot
// comes back by itself: an extension that a quorum has confirmed puts the token
// on the nodes that don't have it.
type Redlock struct {
	options    RedlockOptions
	nodes      []redis.UniversalClient
	queue      lock.Queue
	background sync.WaitGroup
}

// RedlockOptions are the options of NewRedlock; the zero value is the default.
type RedlockOptions struct {
	Options // PollMin and PollMax: 0 = 10 and 50 ms

	// NodeTimeout bounds each exchange with a node; 0 = 50 ms, or a quarter of
	// a TTL that is shorter than 200 ms. Allowed: 1 ms to half of TTL.
	NodeTimeout time.Duration
}

const defaultNodeTimeout = 50 * time.Millisecond

// NewRedlock makes a Redlock on at least three servers, one client each. The
// clients should be as for NewSetNX. Close it when its leases are released.
func NewRedlock(nodes []redis.UniversalClient, options RedlockOptions) (*Redlock, error) {
	options.Options = options.Options.withDefaults(polls{min: 10 * time.Millisecond, max: 50 * time.Millisecond})
	if err := options.Options.validate(); err != nil {
		return nil, err
	}
	if options.NodeTimeout == 0 {
		options.NodeTimeout = min(defaultNodeTimeout, options.TTL/4)
	}
	if options.NodeTimeout < time.Millisecond || options.NodeTimeout > options.TTL/2 {
		return nil, fmt.Errorf("redislock: option NodeTimeout is %v, allowed: 1ms to half of TTL, %v", options.NodeTimeout, options.TTL/2)
	}
	if options.Replicas != 0 {
		return nil, errors.New("redislock: option Replicas is for a lock on one server: replicas of a node have no vote")
	}
	if len(nodes) < 3 {
		return nil, fmt.Errorf("redislock: %d nodes, allowed: at least 3", len(nodes))
	}
	addrs := map[string]bool{}
	for i, node := range nodes {
		if node == nil {
			return nil, fmt.Errorf("redislock: the client of node %d is nil", i)
		}
		if single, ok := node.(*redis.Client); ok {
			if addr := single.Options().Addr; addrs[addr] {
				return nil, fmt.Errorf("redislock: node %s twice: it would have two votes", addr)
			} else {
				addrs[addr] = true
			}
		}
	}
	return &Redlock{options: options, nodes: nodes}, nil
}

var _ lock.Locker = (*Redlock)(nil)

// Acquire waits for its turn in this process, then asks the nodes until enough
// of them agree. Fewer than a quorum that answer are ErrUnavailable.
func (r *Redlock) Acquire(ctx context.Context, key string) (lock.Lease, error) {
	deadline := time.Now().Add(r.options.Wait)
	turn, err := r.queue.Enter(ctx, key, r.options.Wait)
	if err != nil {
		return nil, fmt.Errorf("redislock: acquire %q: %w", key, err)
	}
	b, until, err := r.win(ctx, key, deadline)
	if err != nil {
		turn.Leave()
		return nil, fmt.Errorf("redislock: acquire %q: %w", key, err)
	}

	l := &redlockLease{ballot: b, Term: lock.NewTerm(until, turn.Leave), key: key, turn: turn, watched: make(chan struct{})}
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.stop = stop
	go func() {
		defer close(l.watched)
		l.Keep(watching, r.options.validity(), l.prolong)
	}()
	return l, nil
}

// Close waits for what still goes on at nodes that were too slow to matter. That
// takes no longer than Options.ReleaseTimeout and an exchange.
func (r *Redlock) Close() error {
	r.background.Wait()
	return nil
}

// win holds one ballot after the other, each under a token of its own: what the
// last one may have left behind is withdrawn meanwhile.
func (r *Redlock) win(ctx context.Context, key string, deadline time.Time) (*ballot, time.Time, error) {
	for failures, refused := 0, 0; ; {
		b := r.newBallot(key)
		until := time.Now().Add(r.options.validity()) // of this attempt: it is asked from now on
		votes := b.poll(ctx, b.grant())
		over := lock.ContextError(ctx)
		late := !time.Now().Before(until)
		if over == nil && votes.yes >= r.quorum() && !late {
			return b, until, nil
		}
		b.poll(context.WithoutCancel(ctx), b.withdraw())
		if over != nil {
			return nil, until, over
		}

		left := time.Until(deadline)
		next := between(r.options.PollMin, r.options.PollMax)
		switch {
		case late || r.tooMany(votes.failed):
			if late {
				votes.err = errLate
			}
			failures++
			if failures == attempts || left <= 0 {
				return nil, until, lock.Unavailable(votes.err)
			}
		case left <= 0 || refused+1 == r.options.Tries:
			return nil, until, lock.ErrNotAcquired
		default:
			failures, refused = 0, refused+1
		}
		if !pause(ctx, min(next, left), nil) {
			return nil, until, ctx.Err()
		}
	}
}

// quorum is more than half of all nodes, reachable or not.
func (r *Redlock) quorum() int { return len(r.nodes)/2 + 1 }

// tooMany says whether the rest of the nodes is no quorum.
func (r *Redlock) tooMany(n int) bool { return len(r.nodes)-n < r.quorum() }

type redlockLease struct {
	*ballot
	*lock.Term
	key     string
	turn    *lock.Turn
	stop    context.CancelFunc
	watched chan struct{} // closed when extending has ended

	once sync.Once
	err  error
}

func (l *redlockLease) Key() string   { return l.key }
func (l *redlockLease) Fence() uint64 { return 0 }

// Release stops the extending, deletes the lock everywhere and answers when a
// quorum has, while the other nodes get the time that a release may take.
func (l *redlockLease) Release(ctx context.Context) error {
	l.once.Do(func() {
		l.stop()
		<-l.watched
		l.Stop()
		if err := l.end(ctx); err != nil {
			l.err = fmt.Errorf("redislock: release %q: %w", l.key, err)
		}
		l.turn.Leave()
	})
	return l.err
}

func (l *redlockLease) end(ctx context.Context) error {
	lost := l.IsLost()
	votes := l.poll(context.WithoutCancel(ctx), l.remove())
	switch {
	case lost:
		return lock.ErrLost
	case votes.yes >= l.quorum():
		return nil
	case l.tooMany(votes.failed):
		return lock.Unavailable(votes.err)
	default:
		l.Lose()
		return lock.ErrLost
	}
}

// prolong extends the lease once, on as many nodes as a quorum takes.
func (l *redlockLease) prolong(ctx context.Context) (time.Duration, error) {
	votes := l.poll(ctx, l.extend())
	switch {
	case votes.yes >= l.quorum():
		return l.options.validity(), nil
	case l.tooMany(votes.no):
		return 0, lock.ErrLost
	default:
		return 0, errNoQuorum
	}
}

var errNoQuorum = errors.New("no quorum has answered")

var errNodeSilent = errors.New("a node did not answer in time")
