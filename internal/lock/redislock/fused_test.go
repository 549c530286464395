package redislock

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"flashsale/internal/lock"
	"flashsale/internal/lock/locktest"
)

// lastStep notes who holds the lock when it runs, and answers how often it has.
const lastStep = `redis.call('RPUSH', KEYS[1], redis.call('GET', KEYS[2]) or 'nobody')
return {redis.call('LLEN', KEYS[1]), ARGV[1]}`

var (
	lastAndRelease  = fused(lastStep, releaseSource, "")
	lastAndHandOver = fused(lastStep, handOverSource, "")
	acquireAndFirst = fused("", acquireSource, firstStep)
)

const notes = "notes:{item}"

func noteOn(client *redis.Client) lock.Step {
	return lock.Step{On: client, Script: lastStep, Keys: []string{notes, lockKey}, Args: []any{"told"}}
}

// wantAnswer checks what the step answered, having run so many times.
func wantAnswer(t *testing.T, answer any, err error, runs int64) {
	t.Helper()
	if list, _ := answer.([]any); err != nil || !slices.Equal(list, []any{runs, "told"}) {
		t.Errorf("the step answered %v (%v), want %d, told", answer, err, runs)
	}
}

func TestTheLastStepIsDoneUnderTheLock(t *testing.T) {
	client := connect(t, realRedis(t))
	watchdog := buildWatchdog(t, client, Options{Wait: time.Minute})
	for name, waiting := range map[string]bool{"nobody waits": false, "handed over": true} {
		t.Run(name, func(t *testing.T) {
			client.Del(t.Context(), notes)
			lease := acquire(t, watchdog)
			token := client.Get(t.Context(), lockKey).Val()
			var granted <-chan lock.Lease
			if waiting {
				granted = waitInBackground(t, watchdog, "item")
				awaitNext(t, lease)
			}
			answer, err := lock.ReleaseAfter(t.Context(), lease, noteOn(client))
			wantAnswer(t, answer, err, 1)
			if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
			if held := client.LRange(t.Context(), notes, 0, -1).Val(); !slices.Equal(held, []string{token}) {
				t.Errorf("the lock was held by %q at the step, want %q", held, token)
			}
			if waiting {
				finish(t, granted)
			}
			if n := client.Exists(t.Context(), lockKey).Val(); n != 0 {
				t.Error("the lock is still held")
			}
		})
	}
}

// The exchange fails: the step is repeated, the lock is free in the end, and what
// is said of the step is right.
func TestTheLastExchangeFails(t *testing.T) {
	always := func(how fault) func(context.Context, int) fault {
		return func(context.Context, int) fault { return how }
	}
	first := func(how, then fault) func(context.Context, int) fault {
		return func(_ context.Context, nth int) fault {
			if nth == 1 {
				return how
			}
			return then
		}
	}
	addr := realRedis(t)
	for _, test := range []struct {
		name    string
		fate    func(context.Context, int) fault
		runs    int64 // of the step
		unknown bool  // whether it has run
	}{
		{"not sent once", first(notSent, pass), 1, false},
		{"reply lost once", first(replyLost, pass), 2, false},
		{"never sent", always(notSent), 0, false},
		{"replies lost", always(replyLost), 3, true},
		{"reply lost, then never sent", first(replyLost, notSent), 1, true},
	} {
		for _, waiting := range []bool{false, true} {
			name := test.name
			if waiting {
				name += "/somebody waits"
			}
			t.Run(name, func(t *testing.T) {
				client, _ := flake(t, addr, lastAndRelease, test.fate)
				client.FlushDB(t.Context())
				watchdog := buildWatchdog(t, client, Options{Wait: time.Minute, TTL: time.Second, PollMin: 10 * time.Millisecond, PollMax: 20 * time.Millisecond})
				lease := acquire(t, watchdog)
				var granted <-chan lock.Lease
				if waiting {
					granted = waitInBackground(t, watchdog, "item")
					awaitNext(t, lease)
				}
				answer, err := lock.ReleaseAfter(t.Context(), lease, noteOn(client))
				ran := client.LLen(t.Context(), notes).Val()
				switch {
				case test.unknown:
					if err == nil || !mayHaveRun(err) {
						t.Errorf("error is %v: it says that the step has not run, and it has %d times", err, ran)
					}
				case test.runs == 0:
					if err == nil || mayHaveRun(err) {
						t.Errorf("error is %v, want one that says that nothing was sent", err)
					}
				default:
					wantAnswer(t, answer, err, test.runs)
				}
				if ran < test.runs {
					t.Errorf("the step ran %d times, want %d", ran, test.runs)
				}
				released := lease.Release(t.Context())
				if answered := test.runs > 0 && !test.unknown; answered && released != nil {
					t.Errorf("release: %v", released)
				} else if !answered && errors.Is(released, lock.ErrLost) {
					t.Errorf("release: %v, but nobody took the lock away", released)
				}
				if waiting {
					finish(t, granted) // at the latest when the TTL is over
				}
			})
		}
	}
}

func TestTheLastStepFails(t *testing.T) {
	client := connect(t, realRedis(t))
	client.Set(t.Context(), notes, "no list", 0)
	lease := acquire(t, buildWatchdog(t, client, Options{}))
	answer, err := lock.ReleaseAfter(t.Context(), lease, noteOn(client))
	if err == nil || !strings.Contains(err.Error(), "WRONGTYPE") || answer != nil || mayHaveRun(err) {
		t.Errorf("the step answered %v, %v; want WRONGTYPE", answer, err)
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if n := client.Exists(t.Context(), lockKey).Val(); n != 0 {
		t.Error("the lock is still held")
	}
}

// A lease that has ended, or is another store's, does nothing at all.
func TestTheLastStepOfNoLease(t *testing.T) {
	addr := realRedis(t)
	client, other := connect(t, addr), connect(t, addr)
	watchdog := buildWatchdog(t, client, Options{Wait: time.Minute})
	lease := acquire(t, watchdog)
	_, err := lock.ReleaseAfter(t.Context(), lease, noteOn(other))
	locktest.Is(t, err, errors.ErrUnsupported)
	if n := client.Exists(t.Context(), lockKey).Val(); n != 1 {
		t.Error("the lock is gone")
	}
	lease.(*watchdogLease).Lose()
	_, err = lock.ReleaseAfter(t.Context(), lease, noteOn(client))
	locktest.Is(t, err, lock.ErrLost)
	locktest.Is(t, lease.Release(t.Context()), lock.ErrLost)
	_, err = lock.ReleaseAfter(t.Context(), lease, noteOn(client))
	locktest.Is(t, err, lock.ErrLost)

	released := acquire(t, watchdog)
	if err := released.Release(t.Context()); err != nil {
		t.Error(err)
	}
	_, err = lock.ReleaseAfter(t.Context(), released, noteOn(client))
	locktest.Is(t, err, lock.ErrLost)
	_, err = lock.ReleaseAfter(t.Context(), acquire(t, buildSetNX(t, client, Options{})), noteOn(client))
	locktest.Is(t, err, errors.ErrUnsupported)
	if n := client.Exists(t.Context(), notes).Val(); n != 0 {
		t.Error("a step was run")
	}
}

func TestTheLastScriptIsForgotten(t *testing.T) {
	client := connect(t, realRedis(t))
	lease := acquire(t, buildWatchdog(t, client, Options{}))
	client.ScriptFlush(t.Context())
	answer, err := lock.ReleaseAfter(t.Context(), lease, noteOn(client))
	wantAnswer(t, answer, err, 1)
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// firstStep notes the fence that it was told, and answers with it.
const firstStep = `redis.call('RPUSH', KEYS[1], ARGV[1])
return {ARGV[1], ARGV[2]}`

func firstOn(client *redis.Client) lock.Step {
	return lock.Step{On: client, Script: firstStep, Keys: []string{notes}, Args: []any{"told"}}
}

// wantFirst checks that the step has run under this lease, and been told its fence.
func wantFirst(t *testing.T, lease lock.Lease) {
	t.Helper()
	answer, ran := lock.First(lease)
	want := []any{strconv.FormatUint(lease.Fence(), 10), "told"}
	if list, _ := answer.([]any); !ran || !slices.Equal(list, want) {
		t.Errorf("the first step answered %v (ran: %v), want %v", answer, ran, want)
	}
}

func wantNoFirst(t *testing.T, lease lock.Lease, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if answer, ran := lock.First(lease); ran {
		t.Errorf("a first step answered %v, want none", answer)
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// The step comes with the grant, whoever makes it: Redis, the holder before in this
// process, or the one in another.
func TestTheFirstStepComesWithTheGrant(t *testing.T) {
	const ( // who has the lock before
		nobody = iota
		thisProcess
		another
	)
	for name, holder := range map[string]int{
		"the lock is free":               nobody,
		"handed over within the process": thisProcess,
		"handed over to another process": another,
	} {
		t.Run(name, func(t *testing.T) {
			addr := realRedis(t)
			client := connect(t, addr)
			mine := buildWatchdog(t, client, Options{Wait: time.Minute})
			other := buildWatchdog(t, connect(t, addr), Options{Wait: time.Minute})
			var before lock.Lease
			switch holder {
			case thisProcess:
				before = acquire(t, mine)
			case another:
				before = acquire(t, other)
			}
			leases := make(chan lock.Lease, 1)
			go func() {
				lease, err := lock.AcquireThen(t.Context(), lock.Observe(mine, lock.Observer{}), "item", firstOn(client))
				if err != nil {
					t.Error(err)
				}
				leases <- lease
			}()
			if before != nil {
				if holder == thisProcess {
					awaitNext(t, before)
				} else {
					eventually(t, "it waits in the list", func() bool { return client.Exists(t.Context(), lineKey(lockKey)).Val() == 1 })
				}
				if n := client.Exists(t.Context(), notes).Val(); n != 0 {
					t.Error("the step was run before the grant")
				}
				if err := before.Release(t.Context()); err != nil {
					t.Error(err)
				}
			}
			lease := <-leases
			if lease == nil {
				t.Fatal("no lease")
			}
			wantFirst(t, lease)
			if ran := client.LLen(t.Context(), notes).Val(); ran != 1 {
				t.Errorf("the step ran %d times", ran)
			}
			if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// No answer to the grant: it is asked for again, and runs again under the same fence.
func TestTheAnswerToTheGrantIsLost(t *testing.T) {
	addr := realRedis(t)
	client, _ := flake(t, addr, acquireAndFirst, func(_ context.Context, nth int) fault {
		if nth == 1 {
			return replyLost
		}
		return pass
	})
	lease, err := lock.AcquireThen(t.Context(), buildWatchdog(t, client, Options{}), "item", firstOn(client))
	if err != nil {
		t.Fatal(err)
	}
	wantFirst(t, lease)
	fence := strconv.FormatUint(lease.Fence(), 10)
	if told := client.LRange(t.Context(), notes, 0, -1).Val(); !slices.Equal(told, []string{fence, fence}) {
		t.Errorf("the step was told %q, want %s twice", told, fence)
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// A step that fails leaves its holder with the lock.
func TestTheFirstStepFails(t *testing.T) {
	client := connect(t, realRedis(t))
	client.Set(t.Context(), notes, "no list", 0)
	lease, err := lock.AcquireThen(t.Context(), buildWatchdog(t, client, Options{}), "item", firstOn(client))
	wantNoFirst(t, lease, err)
}

// Where the step can't come with the grant, the lock is granted without.
func TestTheFirstStepIsLeftToTheCaller(t *testing.T) {
	addr := realRedis(t)
	client, other := connect(t, addr), connect(t, addr)
	for name, locker := range map[string]lock.Locker{
		"another client's step": buildWatchdog(t, other, Options{}),
		"setnx":                 buildSetNX(t, client, Options{}),
	} {
		t.Run(name, func(t *testing.T) {
			lease, err := lock.AcquireThen(t.Context(), locker, "item", firstOn(client))
			wantNoFirst(t, lease, err)
		})
	}
	if n := client.Exists(t.Context(), notes).Val(); n != 0 {
		t.Error("a step was run")
	}
}
