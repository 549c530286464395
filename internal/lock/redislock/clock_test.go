package redislock

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// A lease that ends at an instant of the client's clock ends whenever that clock
// says so. All that is sent here are lengths of time, for the server to count.
func TestDeadlineComesFromTheClientsClock(t *testing.T) {
	each(t, func(t *testing.T, rig *rig) {
		client, f := flake(t, rig.addr, nil, nil)
		sent := &arguments{}
		client.AddHook(sent)
		lease := acquire(t, rig.build(t, client, Options{TTL: 600 * time.Millisecond}))
		if rig.features.Extends {
			eventually(t, "extended", func() bool { return f.runs(extendScript) >= 1 })
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
		year2001 := 1_000_000_000.0 // in seconds; more in any smaller unit
		for _, arg := range sent.all() {
			if n, err := strconv.ParseFloat(arg, 64); err == nil && n > year2001 {
				t.Errorf("%s was sent: an instant", arg)
			}
		}
	})
}

// arguments is a hook that keeps those of every script and function.
type arguments struct {
	before // for its other hooks
	mu     sync.Mutex
	args   []string
}

func (a *arguments) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if role(cmd) != nil {
			a.mu.Lock()
			for _, arg := range cmd.Args()[2:] { // but for the script itself
				a.args = append(a.args, fmt.Sprint(arg))
			}
			a.mu.Unlock()
		}
		return next(ctx, cmd)
	}
}

func (a *arguments) all() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.args
}

// One script reaches all keys of a lock, which a cluster allows within a slot.
func TestKeysOfALockAreInTwoSlots(t *testing.T) {
	each(t, func(t *testing.T, rig *rig) {
		var names []string
		client, _ := flake(t, rig.addr, nil, nil)
		client.AddHook(keysOf{func(keys []string) { names = append(names, keys...) }})
		holder := acquire(t, rig.locker(t, Options{}))
		_, _ = rig.build(t, client, Options{Wait: 50 * time.Millisecond}).Acquire(t.Context(), "item")
		if err := holder.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if err := acquire(t, rig.build(t, client, Options{})).Release(t.Context()); err != nil {
			t.Error(err)
		}
		if len(names) < 4 {
			t.Fatalf("only %q was sent", names)
		}
		for _, name := range names {
			if hashTag(name) != "item" {
				t.Errorf("%s may be in another slot than %s", name, lockKey)
			}
		}
	})
}

// keysOf is a hook that is told the keys of every command of a lock.
type keysOf struct{ tell func([]string) }

func (k keysOf) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if role(cmd) != nil {
			args := cmd.Args()
			given := args[1:2] // a plain command has one
			if count, script := args[2].(int); script {
				given = args[3 : 3+count]
			}
			var keys []string
			for _, key := range given {
				keys = append(keys, key.(string))
			}
			k.tell(keys)
		}
		return next(ctx, cmd)
	}
}

func (keysOf) DialHook(next redis.DialHook) redis.DialHook { return next }

func (keysOf) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
