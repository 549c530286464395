package redislock

import (
	"context"
	crand "crypto/rand"
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// attempts is how often a command is sent before its error counts. The
	// scripts can be repeated: the token makes a second run harmless.
	attempts = 3

	// The random pause between them.
	retryMin = 10 * time.Millisecond
	retryMax = 30 * time.Millisecond
)

// protocol is how a variant keeps its lock in Redis. Each method is one
// exchange, which may be repeated with the same token.
type protocol interface {
	// acquire asks for the lock, and says what it was answered.
	acquire(ctx context.Context, lockKey, fenceKey, token string) (answer, error)

	// extend lets the lease live for another TTL: false when it isn't the token's.
	extend(ctx context.Context, lockKey, token string) (bool, error)

	// remove ends the lease, and publishes that on channel unless it is "":
	// false when it isn't the token's.
	remove(ctx context.Context, lockKey, token, channel string) (bool, error)
}

// answer is Redis' to who asks for a lock.
type answer struct {
	granted bool
	fence   uint64        // of the grant; 0 when the variant has none
	held    time.Duration // when not granted: how long the present lease lasts; negative: no end
	first   any           // when granted: what the step answered that came with it; nil: it has not run
	placed  bool          // when not granted: something is kept for this token until it is removed
}

// store is the part that all variants share: a server and how to ask it.
type store struct {
	protocol
	client redis.UniversalClient
	Options
	announces bool // whether a release is published, on a channel named as the lock
	names     *names
}

// names makes tokens that nobody else has, in this process or another: a random
// part, and a number. To draw each at random would cost more than all else that
// a claim does.
type names struct {
	prefix string
	last   atomic.Uint64
}

func newNames() *names { return &names{prefix: crand.Text() + "."} }

func (n *names) next() string { return n.prefix + strconv.FormatUint(n.last.Add(1), 36) }

func newStore(client redis.UniversalClient, options Options, p polls) (*store, error) {
	if client == nil {
		return nil, errors.New("redislock: the client is nil")
	}
	options = options.withDefaults(p)
	if err := options.validate(); err != nil {
		return nil, err
	}
	s := &store{client: client, Options: options, names: newNames()}
	if _, sticky := client.(sticky); options.Replicas > 0 && !sticky {
		return nil, errNotSticky
	}
	s.speak(func(t tokens) protocol { return t })
	return s, nil
}

// speak sets the protocol, which is made of the usual one.
func (s *store) speak(dialect func(tokens) protocol) {
	t := tokens{client: s.client, ttl: s.TTL, deletes: &compareDelete{client: s.client}}
	if server, one := s.client.(*redis.Client); one { // of a cluster, keys may be on several
		t.batcher = &batcher{client: server}
	}
	s.protocol = dialect(t)
	if s.Replicas > 0 {
		s.protocol = acknowledged{protocol: s.protocol, client: s.client.(sticky), replicas: s.Replicas, timeout: s.ReplicaTimeout,
			on: func(conn redis.Cmdable) protocol {
				t := t
				t.client, t.batcher = conn, nil
				return dialect(t)
			}}
	}
}

// speaking is the store with another protocol, for one lease.
func (s *store) speaking(p protocol) *store {
	other := *s
	other.protocol = p
	return &other
}

// validity is for how long after it was asked for a lease can be relied on.
func (o Options) validity() time.Duration { return o.TTL - o.Drift }

// release sends remove until it is answered, in a bounded number of
// attempts and a bounded time that don't depend on ctx being alive. deleted
// says whether the lock was still the token's. After an unsure attempt that is
// not known: the unanswered one may have deleted it.
func (s *store) release(ctx context.Context, lockKey, token string) (deleted, unsure bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.ReleaseTimeout)
	defer cancel()
	channel := ""
	if s.announces {
		channel = lockKey
	}
	for attempt := 1; ; attempt++ {
		deleted, err = s.remove(ctx, lockKey, token, channel)
		if err == nil {
			return deleted, unsure, nil
		}
		unsure = unsure || mayHaveRun(err)
		if attempt == attempts || !pause(ctx, between(retryMin, retryMax), nil) {
			return false, unsure, err
		}
	}
}

// mayHaveRun reports whether a command that ended in err may have reached the
// server and been carried out. An error reply, or a connection that was never
// made, says that it wasn't.
func mayHaveRun(err error) bool {
	if _, reply := errors.AsType[redis.Error](err); reply || errors.Is(err, redis.ErrPoolTimeout) {
		return false
	}
	op, network := errors.AsType[*net.OpError](err)
	return !network || op.Op != "dial"
}

// pause waits for d or, if that comes first, to be woken; false when ctx is done.
func pause(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-wake:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// between draws a duration from [low, high].
func between(low, high time.Duration) time.Duration {
	return low + rand.N(high-low+1)
}
