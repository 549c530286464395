package redislock

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"flashsale/internal/lock"
)

// The scripts. Run sends a script's digest and, when the server doesn't know
// it (a restart, a failover, SCRIPT FLUSH), its text.
var (
	//go:embed acquire.lua
	acquireSource string
	//go:embed release.lua
	releaseSource string
	//go:embed extend.lua
	extendSource string
	//go:embed handover.lua
	handOverSource string
	//go:embed enlist.lua
	enlistSource string

	acquireScript = redis.NewScript(acquireSource)
	releaseScript = redis.NewScript(releaseSource)
	extendScript  = redis.NewScript(extendSource)

	handOverScript = redis.NewScript(handOverSource)
	enlistScript   = redis.NewScript(enlistSource + acquireSource)
)

// tokens is the usual protocol: the lock is a key, its value the holder's token.
type tokens struct {
	client  redis.Cmdable
	batcher *batcher // nil: every script goes alone
	ttl     time.Duration
	deletes *compareDelete
	last    *last      // goes with the script that ends the lease; nil: nothing
	first   *lock.Step // goes with the script that grants one; nil: nothing
}

var _ protocol = tokens{}

func (t tokens) acquire(ctx context.Context, lockKey, fenceKey, token string) (answer, error) {
	return t.ask(ctx, &call{
		script: acquireScript,
		keys:   []string{lockKey, fenceKey},
		args:   []any{token, t.ttl.Milliseconds(), fenceTTL.Milliseconds()},
	})
}

// granting is the protocol with a first step for whom it grants the lock.
func (t tokens) granting(first *lock.Step) handsOver {
	t.first = first
	return t
}

// ask runs a script that may grant the lock.
func (t tokens) ask(ctx context.Context, c *call) (answer, error) {
	c.first = t.first
	reply, err := parseAnswer(t.run(ctx, c).Result())
	reply.first = c.answer
	return reply, err
}

// run runs a script, with others if it may.
func (t tokens) run(ctx context.Context, c *call) *redis.Cmd {
	switch {
	case t.last != nil, c.first != nil:
		return c.runWith(ctx, t.client, t.last)
	case t.batcher == nil:
		return c.script.Run(ctx, t.client, c.keys, c.args...)
	}
	return t.batcher.run(ctx, c)
}

// parseAnswer reads what an acquiring script returns: the fence as a string, or
// as an integer the ms that the present lease lasts.
func parseAnswer(reply any, err error) (answer, error) {
	if err != nil {
		return answer{}, err
	}
	switch reply := reply.(type) {
	case int64:
		return answer{held: time.Duration(reply) * time.Millisecond}, nil
	case string:
		fence, err := strconv.ParseUint(reply, 10, 64)
		return answer{granted: err == nil, fence: fence}, err
	default:
		return answer{}, fmt.Errorf("a script that acquires answered %T", reply)
	}
}

func (t tokens) extend(ctx context.Context, lockKey, token string) (bool, error) {
	return t.run(ctx, &call{script: extendScript, keys: []string{lockKey}, args: []any{token, t.ttl.Milliseconds()}}).Bool()
}

func (t tokens) remove(ctx context.Context, lockKey, token, channel string) (bool, error) {
	if channel == "" && t.last == nil {
		if deleted, supported, err := t.deletes.run(ctx, lockKey, token); supported {
			return deleted, err
		}
	}
	return t.run(ctx, &call{script: releaseScript, keys: []string{lockKey}, args: []any{token, channel}}).Bool()
}

func (t tokens) handOver(ctx context.Context, lockKey, fenceKey, token, next string, listeners int) (answer, handOver, error) {
	reply, err := t.ask(ctx, &call{
		script: handOverScript,
		keys:   []string{lockKey, fenceKey, lineKey(lockKey)},
		args: []any{token, next, t.ttl.Milliseconds(), fenceTTL.Milliseconds(),
			listeners, min(keptFor, t.ttl).Milliseconds()},
	})
	return reply, handOver(reply.held / time.Millisecond), err
}

func (t tokens) enlist(ctx context.Context, lockKey, fenceKey, token string) (answer, error) {
	t.batcher = nil // nobody else's may go with it
	reply, err := t.ask(ctx, &call{
		script: enlistScript,
		keys:   []string{lockKey, fenceKey, lineKey(lockKey)},
		args:   []any{token, t.ttl.Milliseconds(), fenceTTL.Milliseconds(), listTTL.Milliseconds()},
	})
	reply.placed = err == nil && !reply.granted
	return reply, err
}

func (t tokens) delist(ctx context.Context, lockKey, token string) error {
	return t.client.LRem(ctx, lineKey(lockKey), 1, token).Err()
}
