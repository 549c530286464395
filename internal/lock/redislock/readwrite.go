package redislock

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"flashsale/internal/lock"
)

// ReadWrite is a pair of locks: any number of readers at a time, or one writer
// alone. Every holder has a lease of its own, which is extended while it is held.
//
// Protects against:  a reader that sees a write half done; readers that wait for each other; a stream of readers that keeps a writer out; one reader's lease that ends with another's.
// Still fails when:  as Watchdog, for writers, whom the fence helps; a reader that is paused past the TTL reads beside a writer. A stream of writers keeps readers out.
// Fixed by:          for writers the fence. Readers have none: they read a version, and compare it.
type ReadWrite struct {
	reader, writer *store
	listener       *listener
	queue          lock.Queue // of this process's writers
}

// NewReadWrite makes a ReadWrite on one Redis, or Redis Cluster. The client
// should be as for NewSetNX. Close it when no one acquires any more.
//
// Two more keys, named as the lock with ":readers" and ":waiting" behind it,
// exist while somebody reads, or a writer waits.
func NewReadWrite(client redis.UniversalClient, options Options) (*ReadWrite, error) {
	writer, err := newStore(client, options, pollBeside)
	if err != nil {
		return nil, err
	}
	writer.announces = true
	reader := *writer
	note := min(3*writer.PollMax, writer.TTL) // a writer that waits renews it each PollMax
	if writer.Wait < 0 {
		note = 0
	}
	writer.speak(func(t tokens) protocol { return writing{t, note} })
	reader.speak(func(t tokens) protocol { return reading(t) })
	return &ReadWrite{reader: &reader, writer: writer, listener: newListener(client)}, nil
}

// Reader is the lock that readers share. Its leases have no fence.
func (rw *ReadWrite) Reader() lock.Locker { return readers{rw} }

// Writer is the lock that excludes everybody else.
func (rw *ReadWrite) Writer() lock.Locker { return writers{rw} }

// Close ends the connection that waiters share. Leases stay as they are;
// waiters that are left poll.
func (rw *ReadWrite) Close() error {
	rw.listener.close()
	return nil
}

type (
	readers struct{ *ReadWrite }
	writers struct{ *ReadWrite }
)

var _, _ lock.Locker = readers{}, writers{}

// Acquire waits until no writer is inside or waits.
func (r readers) Acquire(ctx context.Context, key string) (lock.Lease, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("redislock: acquire %q: %w", key, err)
	}
	c := r.reader.claim(key)
	won, err := c.win(ctx, time.Now().Add(r.reader.Wait), r.listener)
	if err != nil {
		return nil, err
	}
	return watch(ctx, newLease(c, won, nil), func() {}), nil
}

// Acquire waits for its turn among this process's writers, then until nobody
// else is inside.
func (w writers) Acquire(ctx context.Context, key string) (lock.Lease, error) {
	deadline := time.Now().Add(w.writer.Wait)
	c := w.writer.claim(key)
	turn, err := w.queue.Enter(ctx, key, w.writer.Wait)
	if err != nil {
		return nil, c.giveUp(ctx, err)
	}
	won, err := c.win(ctx, deadline, w.listener)
	if err != nil {
		turn.Leave()
		return nil, err
	}
	return watch(ctx, newLease(c, won, turn.Leave), turn.Leave), nil
}

var (
	//go:embed rw_read.lua
	rwReadSource string
	//go:embed rw_read_extend.lua
	rwReadExtendSource string
	//go:embed rw_read_release.lua
	rwReadReleaseSource string
	//go:embed rw_write.lua
	rwWriteSource string
	//go:embed rw_write_release.lua
	rwWriteReleaseSource string

	rwReadScript         = redis.NewScript(rwReadSource)
	rwReadExtendScript   = redis.NewScript(rwReadExtendSource)
	rwReadReleaseScript  = redis.NewScript(rwReadReleaseSource)
	rwWriteScript        = redis.NewScript(rwWriteSource + acquireSource)
	rwWriteReleaseScript = redis.NewScript(rwWriteReleaseSource)
)

// reading is the protocol of readers: each token is in a set, with the end of
// its own lease.
type reading tokens

var _ protocol = reading{}

const letIn = -2 // what rw_read.lua answers

func (r reading) acquire(ctx context.Context, lockKey, _, token string) (answer, error) {
	ms, err := rwReadScript.Run(ctx, r.client, []string{lockKey, readersKey(lockKey), waitingKey(lockKey)}, token, r.ttl.Milliseconds()).Int64()
	if err != nil || ms == letIn {
		return answer{granted: err == nil}, err
	}
	return answer{held: time.Duration(ms) * time.Millisecond}, nil
}

func (r reading) extend(ctx context.Context, lockKey, token string) (bool, error) {
	return rwReadExtendScript.Run(ctx, r.client, []string{readersKey(lockKey)}, token, r.ttl.Milliseconds()).Bool()
}

func (r reading) remove(ctx context.Context, lockKey, token, channel string) (bool, error) {
	return rwReadReleaseScript.Run(ctx, r.client, []string{readersKey(lockKey)}, token, channel).Bool()
}

// writing is the protocol of writers: the usual one, once no reader is inside.
type writing struct {
	tokens
	note time.Duration // how long readers are kept out for a writer that has asked
}

var _ protocol = writing{}

func (w writing) acquire(ctx context.Context, lockKey, fenceKey, token string) (answer, error) {
	reply, err := parseAnswer(rwWriteScript.Run(ctx, w.client, []string{lockKey, fenceKey, readersKey(lockKey), waitingKey(lockKey)},
		token, w.ttl.Milliseconds(), fenceTTL.Milliseconds(), w.note.Milliseconds()).Result())
	reply.placed = err == nil && !reply.granted && w.note > 0
	return reply, err
}

func (w writing) remove(ctx context.Context, lockKey, token, channel string) (bool, error) {
	return rwWriteReleaseScript.Run(ctx, w.client, []string{lockKey, waitingKey(lockKey)}, token, channel).Bool()
}

func readersKey(lockKey string) string { return lockKey + ":readers" }
func waitingKey(lockKey string) string { return lockKey + ":waiting" }
