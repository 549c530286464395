package redislock

import (
	"context"
	"errors"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"flashsale/internal/lock"
	"flashsale/internal/lock/locktest"
	"flashsale/internal/servers/servertest"
)

// each runs a test with every variant on one redis-server.
func each(t *testing.T, test func(t *testing.T, rig *rig)) {
	t.Helper()
	addr := realRedis(t)
	for _, variant := range variants {
		t.Run(variant.name, func(t *testing.T) {
			rig := &rig{variant: variant, addr: addr, redis: connect(t, addr)}
			variant.skipUnless(t, rig.redis)
			if err := rig.redis.FlushAll(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
			test(t, rig)
		})
	}
}

type rig struct {
	variant
	addr  string
	redis *redis.Client // undisturbed
}

func (r *rig) locker(t testing.TB, options Options) lock.Locker {
	return r.build(t, connect(t, r.addr), options)
}

func (r *rig) flaky(t testing.TB, options Options, script *redis.Script, fate func(context.Context, int) fault) (lock.Locker, *flaky) {
	client, f := flake(t, r.addr, script, fate)
	return r.build(t, client, options), f
}

func (r *rig) nothingLeft(t testing.TB) {
	t.Helper()
	if left := residue(t, r.redis, "item"); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

const lockKey, fenceKey = "lock:{item}", "fence:{item}"

func acquire(t testing.TB, locker lock.Locker) lock.Lease {
	t.Helper()
	lease, err := locker.Acquire(t.Context(), "item")
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func TestLostReplyOfTheGrantLooksLikeContention(t *testing.T) {
	each(t, func(t *testing.T, rig *rig) {
		granted := ""
		locker, f := rig.flaky(t, Options{}, acquireScript, func(ctx context.Context, nth int) fault {
			if nth == 2 {
				granted = rig.redis.Get(ctx, fenceKey).Val()
			}
			return first(2, replyLost)(ctx, nth)
		})
		lease := acquire(t, locker)
		if n := f.runs(acquireScript); n != 3 {
			t.Errorf("asked %d times, want 3", n)
		}
		if fence := strconv.FormatUint(lease.Fence(), 10); fence != granted {
			t.Errorf("fence %s, but the same grant had %s at first", fence, granted)
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
		rig.nothingLeft(t)
	})
}

func TestUnansweredAcquisitionKeepsTheLock(t *testing.T) {
	each(t, func(t *testing.T, rig *rig) {
		locker, _ := rig.flaky(t, Options{}, acquireScript, first(attempts, replyLost))
		_, err := locker.Acquire(t.Context(), "item")
		locktest.Is(t, err, lock.ErrUnavailable)
		if !errors.Is(err, errLink) {
			t.Errorf("%v hides its cause", err)
		}
		rig.nothingLeft(t)
	})
}

func TestCallerCancelledWhileTheGrantIsUnderWayKeepsTheLock(t *testing.T) {
	for name, outcome := range map[string]fault{"reply arrives": pass, "reply lost": replyLost} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, rig *rig) {
				ctx, cancel := context.WithCancel(t.Context())
				client, _ := flake(t, rig.addr, acquireScript, first(attempts, outcome))
				client.AddHook(afterScript(cancel))
				_, err := rig.build(t, client, Options{}).Acquire(ctx, "item")
				locktest.Is(t, err, context.Canceled)
				rig.nothingLeft(t)
				if rig.redis.Exists(t.Context(), fenceKey).Val() == 0 {
					t.Error("it was never granted: the test shows nothing")
				}
			})
		})
	}
}

func TestReleaseIsGivenUpAfterOneNetworkError(t *testing.T) {
	each(t, func(t *testing.T, rig *rig) {
		locker, f := rig.flaky(t, Options{}, releaseScript, first(2, notSent))
		if err := acquire(t, locker).Release(t.Context()); err != nil {
			t.Error(err)
		}
		if n := f.runs(releaseScript); n != 3 {
			t.Errorf("%d attempts, want 3", n)
		}
		rig.nothingLeft(t)
	})
}

func TestLostReplyOfTheReleaseLooksLikeALoss(t *testing.T) {
	each(t, func(t *testing.T, rig *rig) {
		locker, _ := rig.flaky(t, Options{}, releaseScript, first(1, replyLost))
		lease := acquire(t, locker)
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
		select {
		case <-lease.Lost():
			t.Error("the holder was told of a loss")
		default:
		}
		rig.nothingLeft(t)
	})
}

func TestReleaseTriesForEver(t *testing.T) {
	each(t, func(t *testing.T, rig *rig) {
		locker, f := rig.flaky(t, Options{}, releaseScript, first(1000, notSent))
		lease := acquire(t, locker)
		for range 2 {
			locktest.Is(t, lease.Release(t.Context()), lock.ErrUnavailable)
		}
		if n := f.runs(releaseScript); n != attempts {
			t.Errorf("%d attempts, want %d", n, attempts)
		}
	})
}

func TestGrantThatCameTooLateIsHandedOut(t *testing.T) {
	each(t, func(t *testing.T, rig *rig) {
		const ttl = 600 * time.Millisecond
		locker, f := rig.flaky(t, Options{TTL: ttl}, acquireScript, func(_ context.Context, nth int) fault {
			if nth == 1 {
				time.Sleep(ttl) // counts as the command's own time
			}
			return pass
		})
		lease := acquire(t, locker)
		select {
		case <-lease.Lost():
			t.Error("handed out when it was over already")
		default:
		}
		if n := f.runs(acquireScript); n != 2 {
			t.Errorf("asked %d times, want 2", n)
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestStoreThatIsAwayLooksLikeContention(t *testing.T) {
	for _, variant := range variants {
		t.Run(variant.name, func(t *testing.T) {
			client := connect(t, freeAddr(t)) // nobody listens there
			locker := variant.build(t, client, Options{})
			start := time.Now()
			_, err := locker.Acquire(t.Context(), "item")
			locktest.Is(t, err, lock.ErrUnavailable)
			if took := time.Since(start); took > lock.DefaultWait {
				t.Errorf("answered after %v", took)
			}
		})
	}
}

func TestServerThatHangsHoldsUpTheCaller(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") // accepts, never answers
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for _, variant := range variants {
		t.Run(variant.name, func(t *testing.T) {
			client := redis.NewClient(&redis.Options{Addr: listener.Addr().String(), MaxRetries: -1,
				ReadTimeout: 50 * time.Millisecond, ContextTimeoutEnabled: true})
			t.Cleanup(func() { client.Close() })
			locker := variant.build(t, client, Options{Wait: 100 * time.Millisecond, ReleaseTimeout: 100 * time.Millisecond})
			start := time.Now()
			_, err := locker.Acquire(t.Context(), "item")
			locktest.Is(t, err, lock.ErrUnavailable)
			if took := time.Since(start); took > 2*time.Second {
				t.Errorf("answered after %v", took)
			}

			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			_, err = locker.Acquire(ctx, "item")
			locktest.Is(t, err, context.DeadlineExceeded)
		})
	}
}

func TestErrorReplyLooksLikeContention(t *testing.T) {
	each(t, func(t *testing.T, rig *rig) {
		rig.redis.LPush(t.Context(), lockKey, "not a lock")
		locker := rig.locker(t, Options{})
		_, err := locker.Acquire(t.Context(), "item")
		locktest.Is(t, err, lock.ErrUnavailable)
		if n := rig.redis.LLen(t.Context(), lockKey).Val(); n != 1 {
			t.Error("what wasn't a lock was deleted")
		}
	})
}

func TestScriptsAreForgotten(t *testing.T) {
	each(t, func(t *testing.T, rig *rig) {
		locker, f := rig.flaky(t, Options{TTL: 900 * time.Millisecond}, nil, nil)
		forget := func() {
			if err := rig.redis.ScriptFlush(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
			if hasFunctions(t, rig.redis) {
				if err := rig.redis.FunctionFlush(t.Context()).Err(); err != nil {
					t.Fatal(err)
				}
			}
		}
		forget()
		lease := acquire(t, locker)
		forget()
		if rig.features.Extends {
			eventually(t, "extended", func() bool { return f.runs(extendScript) >= 2 })
		}
		forget()
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
		rig.nothingLeft(t)
	})
}

func TestFenceLosesDigitsOrGoesBack(t *testing.T) {
	each(t, func(t *testing.T, rig *rig) {
		locker := rig.locker(t, Options{})
		tests := map[string]uint64{
			"last from a clock ahead": 4102444800000007, // in the year 2100
			"the last of 2^53":        1<<53 - 1 - maxInARow,
		}
		for name, last := range tests {
			if err := rig.redis.Set(t.Context(), fenceKey, last, 0).Err(); err != nil {
				t.Fatal(err)
			}
			lease := acquire(t, locker)
			if want := last + maxInARow; lease.Fence() != want {
				t.Errorf("%s: fence %d, want %d", name, lease.Fence(), want)
			}
			if got := rig.redis.Get(t.Context(), fenceKey).Val(); got != strconv.FormatUint(last+maxInARow, 10) {
				t.Errorf("%s: stored %s", name, got)
			}
			if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}

		// A flush forgets the last fence; the clock makes up for it.
		rig.redis.Del(t.Context(), fenceKey)
		before := acquire(t, locker)
		rig.redis.FlushAll(t.Context())
		after := acquire(t, rig.locker(t, Options{}))
		if after.Fence() <= before.Fence() {
			t.Errorf("fence %d after %d", after.Fence(), before.Fence())
		}
		locktest.Is(t, before.Release(t.Context()), lock.ErrLost)
		if err := after.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestRestartLosesTheLockOrTheCallers(t *testing.T) {
	for _, variant := range variants {
		t.Run(variant.name, func(t *testing.T) {
			server := servertest.RedisServer(t)
			variant.skipUnless(t, connect(t, server.Addr()))
			locker := variant.build(t, connect(t, server.Addr()), Options{Wait: 10 * time.Second})
			other := variant.build(t, connect(t, server.Addr()), Options{Wait: 10 * time.Second})

			lease := acquire(t, locker)
			server.Kill()
			_, err := other.Acquire(t.Context(), "item")
			locktest.Is(t, err, lock.ErrUnavailable)
			start(t, server)

			granted := make(chan lock.Lease, 1)
			go func() {
				next, err := other.Acquire(t.Context(), "item")
				if err != nil {
					t.Error(err)
				}
				granted <- next
			}()
			if err := lease.Release(t.Context()); err != nil {
				t.Errorf("the lock did not survive: %v", err)
			}
			next := <-granted
			if next == nil {
				return
			}
			if next.Fence() <= lease.Fence() {
				t.Errorf("fence %d after %d", next.Fence(), lease.Fence())
			}
			if err := next.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestMain(m *testing.M) {
	redis.SetLogger(quiet{}) // a refused connection is what a test is about, not worth a line
	goleak.VerifyTestMain(m)
}

type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}
