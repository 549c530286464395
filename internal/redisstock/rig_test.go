package redisstock

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"flashsale/internal/lock"
	"flashsale/internal/rediskey"
	"flashsale/internal/servers/servertest"
	"flashsale/internal/stock"
	"flashsale/internal/stock/stocktest"
)

// fixture is a Store on some Redis, under a prefix of its own.
type fixture struct {
	*Store
	client *redis.Client
	hook   *hook
}

func newFixture(t testing.TB, addr, prefix string) fixture {
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, DialerRetries: 1})
	t.Cleanup(func() { client.Close() })
	hook := &hook{}
	client.AddHook(hook)
	return fixture{New(client, Options{Keys: rediskey.Keys{Prefix: prefix}}), client, hook}
}

// onReal is a fixture on a real Redis, where there is one.
func onReal(t testing.TB) fixture {
	f := newFixture(t, servertest.Redis(t), servertest.Prefix(t))
	t.Cleanup(func() {
		if err := f.Purge(context.Background()); err != nil {
			t.Errorf("purge: %v", err)
		}
	})
	return f
}

func (f fixture) rig(counter stock.Counter) stocktest.Rig {
	return stocktest.Rig{
		Counter: counter, Desk: f.Store,
		Outbox:      NewOutbox(f.client, Options{Keys: f.keys}),
		LoseAnswers: f.hook.lose.Store,
	}
}

// hook stands between client and server. Its functions are set while no
// script runs, or by one of themselves.
type hook struct {
	lose  atomic.Bool                // scripts that deduct run, but their answers are lost
	fail  func(script *script) error // called in the place of the server, which answers when it returns nil
	after func(script *script)       // called when a script has run, before its answer is passed on

	answer func(script *script) error // called likewise, its error is what arrives in the answer's place
}

func (h *hook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h *hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		script := scriptOf(cmd)
		if script == nil {
			return next(ctx, cmd)
		}
		if h.fail != nil {
			if err := h.fail(script); err != nil {
				cmd.SetErr(err)
				return err
			}
		}
		err := next(ctx, cmd)
		lost := h.lose.Load() && deducting(script)
		if err == nil && h.after != nil {
			h.after(script)
		}
		if err == nil && h.answer != nil {
			if err := h.answer(script); err != nil {
				cmd.SetErr(err)
				return err
			}
		}
		if err == nil && lost {
			cmd.SetErr(io.EOF)
			return io.EOF
		}
		return err
	}
}

// scriptOf is the script that cmd runs, nil if it runs none. The guarded read may
// come with a lock.
func scriptOf(cmd redis.Cmder) *script {
	var hash string
	switch cmd.Name() {
	case "evalsha":
		hash = cmd.Args()[1].(string)
	case "eval":
		sum := sha1.Sum([]byte(cmd.Args()[1].(string)))
		hash = hex.EncodeToString(sum[:])
	default:
		return nil
	}
	for _, script := range []*script{
		preloadScript, snapshotScript, closeScript, guardedReadScript, guardedWriteScript, atomicScript, stripedReadScript, stripedWriteScript,
	} {
		if hash == script.Hash() {
			return script
		}
	}
	if reads, writes := parts(scriptKeys(cmd)); reads && !writes {
		return guardedReadScript
	}
	return nil
}

// scriptKeys are the keys of the script that cmd runs.
func scriptKeys(cmd redis.Cmder) []string {
	var keys []string
	for _, key := range cmd.Args()[3 : 3+cmd.Args()[2].(int)] {
		keys = append(keys, key.(string))
	}
	return keys
}

// parts says of a script on a lock, by its keys, whether the lock's next holder
// reads in it, and whether the last one writes.
func parts(keys []string) (reads, writes bool) {
	var locks, sales, outboxes int
	for _, key := range keys {
		switch _, name, _ := strings.Cut(key, "}:"); {
		case strings.HasPrefix(name, "lock:"):
			locks++
		case strings.HasPrefix(name, "sale:"):
			sales++
		case name == "outbox":
			outboxes++
		}
	}
	// Each has the three keys of the sale.
	return locks > 0 && sales/3 > outboxes, locks > 0 && outboxes > 0
}

// striped is the third, under locks of this process.
func striped(s *Store) stock.Counter { return s.Striped(lock.NewLocal(lock.LocalOptions{})) }

// counters are the two, each to be tested on every server.
var counters = map[string]func(*Store) stock.Counter{
	"guarded": (*Store).Guarded,
	"atomic":  (*Store).Atomic,
}

// rigs are a counter on every server: the real one, and the stand-in, whose
// clock can be set.
func rigs(counter func(*Store) stock.Counter) map[string]func(*testing.T) stocktest.Rig {
	return map[string]func(*testing.T) stocktest.Rig{
		"redis": func(t *testing.T) stocktest.Rig {
			f := onReal(t)
			return f.rig(counter(f.Store))
		},
		"miniredis": func(t *testing.T) stocktest.Rig {
			server := miniredis.RunT(t)
			f := newFixture(t, server.Addr(), "")
			rig := f.rig(counter(f.Store))
			rig.SetClock = func(now time.Time) { server.SetTime(now) }
			return rig
		},
	}
}
