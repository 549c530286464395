package redislock

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
)

// fault is what happens to a command on its way.
type fault int

const (
	pass      fault = iota
	notSent         // fails, and the server has not run it
	replyLost       // fails, but the server has run it
)

var errLink = errors.New("the link broke")

// roles is every script of a lock, by what it does: a test picks the usual one,
// and means the function too.
var roles = map[*redis.Script]*redis.Script{
	acquireScript: acquireScript, fairAcquireScript: acquireScript,
	releaseScript: releaseScript, fairReleaseScript: releaseScript,
	extendScript: extendScript,

	handOverScript: acquireScript, // for who comes next

	lastAndRelease: lastAndRelease, lastAndHandOver: lastAndRelease,
	acquireAndFirst: acquireAndFirst,
	enlistScript:    acquireScript,
}

// role is what a command does; nil: nothing that a test picks.
func role(cmd redis.Cmder) *redis.Script {
	switch cmd.Name() {
	case "fcall":
		return map[any]*redis.Script{
			library + "_acquire": acquireScript, library + "_release": releaseScript, library + "_extend": extendScript,
		}[cmd.Args()[1]]
	case "delex", "delifeq":
		return releaseScript
	case "evalsha":
		for script, role := range roles {
			if cmd.Args()[1] == script.Hash() {
				return role
			}
		}
	}
	return nil
}

// flaky is a go-redis hook that fails the scripts that a test picks.
type flaky struct {
	mu   sync.Mutex
	plan map[*redis.Script]func(ctx context.Context, nth int) fault // nth run of this script, from 1
	seen map[*redis.Script]int
}

// flake makes a client whose runs of script end as fate says.
func flake(t testing.TB, addr string, script *redis.Script, fate func(ctx context.Context, nth int) fault) (*redis.Client, *flaky) {
	t.Helper()
	f := &flaky{plan: map[*redis.Script]func(context.Context, int) fault{script: fate}, seen: map[*redis.Script]int{}}
	client := connect(t, addr)
	for script := range roles {
		if err := script.Load(t.Context(), client).Err(); err != nil { // one command a run
			t.Fatal(err)
		}
	}
	if hasFunctions(t, client) {
		if err := loadLibrary(t.Context(), client); err != nil {
			t.Fatal(err)
		}
	}
	client.AddHook(f)
	return client, f
}

// runs is how often a script was tried.
func (f *flaky) runs(script *redis.Script) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen[script]
}

func (f *flaky) fate(ctx context.Context, cmd redis.Cmder) fault {
	script := role(cmd)
	if script == nil {
		return pass
	}
	f.mu.Lock()
	f.seen[script]++
	nth := f.seen[script]
	f.mu.Unlock()
	if plan := f.plan[script]; plan != nil {
		return plan(ctx, nth)
	}
	return pass
}

func (f *flaky) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		switch f.fate(ctx, cmd) {
		case notSent:
			err := &net.OpError{Op: "dial", Err: errLink}
			cmd.SetErr(err)
			return err
		case replyLost:
			_ = next(ctx, cmd)
			cmd.SetErr(errLink)
			return errLink
		default:
			return next(ctx, cmd)
		}
	}
}

func (f *flaky) DialHook(next redis.DialHook) redis.DialHook { return next }

func (f *flaky) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// first is a fate: the first n runs end in f.
func first(n int, f fault) func(context.Context, int) fault {
	return func(_ context.Context, nth int) fault {
		if nth <= n {
			return f
		}
		return pass
	}
}

// afterScript is a hook that runs once a script has been answered, before the
// answer is seen.
type afterScript func()

func (f afterScript) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if role(cmd) != nil {
			f()
		}
		return err
	}
}

func (f afterScript) DialHook(next redis.DialHook) redis.DialHook { return next }

func (f afterScript) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
