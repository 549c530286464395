package redislock

import (
	"context"
	"errors"
	"slices"
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
	lastAndRelease  = fused(lastStep, releaseSource)
	lastAndHandOver = fused(lastStep, handOverSource)
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
