package redislock

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"flashsale/internal/lock"
	"flashsale/internal/lock/locktest"
)

// Each broken lock fails as its file says. Should one of these tests fail, then
// somebody has repaired what is there to be watched.

func TestBareSetNXIsStuckWhenTheHolderCrashes(t *testing.T) {
	addr := realRedis(t)
	crash(func() { acquire(t, buildBare(t, connect(t, addr), Options{TTL: minTTL})) })
	stuckForEver(t, addr, buildBare(t, connect(t, addr), Options{Wait: 10 * minTTL}))
}

func TestExpireAsASecondCommandIsStuckWhenTheHolderCrashesBeforeIt(t *testing.T) {
	addr := realRedis(t)
	client := connect(t, addr)
	client.AddHook(before{"pexpire", runtime.Goexit})
	crash(func() { _, _ = buildExpire(t, client, Options{TTL: minTTL}).Acquire(t.Context(), "item") })
	stuckForEver(t, addr, buildExpire(t, connect(t, addr), Options{Wait: 10 * minTTL}))
}

func TestExpireAsASecondCommandCoversForAnyOtherCrash(t *testing.T) {
	addr := realRedis(t)
	crash(func() { acquire(t, buildExpire(t, connect(t, addr), Options{TTL: 50 * time.Millisecond})) })
	next := acquire(t, buildExpire(t, connect(t, addr), Options{}))
	if err := next.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestCompareInTheClientDeletesTheNextHoldersLock(t *testing.T) {
	addr := realRedis(t)
	undisturbed := connect(t, addr)
	others := buildGetDel(t, undisturbed, Options{Wait: lock.TryOnce})
	var second lock.Lease
	client := connect(t, addr)
	client.AddHook(before{"del", func() { // compared, and not yet deleted: the lease ends, and another has the lock
		undisturbed.Del(context.Background(), lockKey)
		second = acquire(t, others)
	}})
	first := acquire(t, buildGetDel(t, client, Options{}))
	if err := first.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if second == nil {
		t.Fatal("nothing was deleted: the test shows nothing")
	}
	third, err := others.Acquire(t.Context(), "item")
	if err != nil {
		t.Fatalf("the second holder still has its lock (%v): the lesson is lost", err)
	}
	if err := third.Release(t.Context()); err != nil {
		t.Error(err)
	}
	locktest.Is(t, second.Release(t.Context()), lock.ErrLost)
}

// SetNX stands the same test: there is nothing between its two steps.
func TestCompareOnTheServerDeletesTheNextHoldersLock(t *testing.T) {
	addr := realRedis(t)
	undisturbed := connect(t, addr)
	others := newSetNX(t, addr, Options{Wait: lock.TryOnce})
	first := acquire(t, newSetNX(t, addr, Options{}))
	undisturbed.Del(t.Context(), lockKey)
	second := acquire(t, others)
	locktest.Is(t, first.Release(t.Context()), lock.ErrLost)
	_, err := others.Acquire(t.Context(), "item")
	locktest.Is(t, err, lock.ErrNotAcquired)
	if err := second.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestBrokenLockHidesThatTheStoreIsAway(t *testing.T) {
	for _, variant := range brokenVariants {
		t.Run(variant.name, func(t *testing.T) {
			_, err := variant.build(t, connect(t, freeAddr(t)), Options{}).Acquire(t.Context(), "item")
			locktest.Is(t, err, lock.ErrUnavailable)
		})
	}
}

// crash runs a holder that ends without a word.
func crash(holder func()) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		holder()
	}()
	<-ended
}

func stuckForEver(t *testing.T, addr string, next lock.Locker) {
	t.Helper()
	_, err := next.Acquire(t.Context(), "item")
	locktest.Is(t, err, lock.ErrNotAcquired)
	if ttl := connect(t, addr).TTL(t.Context(), lockKey).Val(); ttl != -1 {
		t.Errorf("the lock ends after %v: the lesson is lost", ttl)
	}
}

// before is a hook that runs before a command is sent.
type before struct {
	command string
	do      func()
}

func (b before) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if strings.EqualFold(cmd.Name(), b.command) {
			b.do()
		}
		return next(ctx, cmd)
	}
}

func (before) DialHook(next redis.DialHook) redis.DialHook { return next }

func (before) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
