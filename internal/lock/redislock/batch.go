package redislock

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"flashsale/internal/lock"
)

const (
	// maxFlights is how many script calls of a batcher may be under way: while
	// Redis works on one, the next is filled and the last one's callers wake.
	maxFlights = 2

	// maxCalls bounds how long Redis is busy with one of them.
	maxCalls = 64

	giveBackTimeout = 2 * time.Second
)

// batcher sends the scripts that callers run at the same moment, on keys of all
// kinds, in one exchange. Nobody waits to be joined: who comes while fewer than
// maxFlights are under way runs its script as if there were no batcher, and the
// others go together as soon as one of these is back.
//
// A script in a batch runs as it would alone: its error is its caller's, and a
// caller whose context ends changes nothing for the others. One that was granted
// a lock when it had gone gives it back.
type batcher struct {
	client redis.Cmdable

	mu      sync.Mutex
	flights int
	waiting []*call
}

// call is a script that a caller runs.
type call struct {
	script *redis.Script
	keys   []string
	args   []any
	first  *lock.Step // to be run if it grants a lock; nil: nothing
	answer any        // that step's; nil: it has not run

	state callState
	turn  chan struct{} // is sent to when it isn't waiting any more: alone, or done
	cmd   *redis.Cmd    // its result, if it was batched
}

type callState int

const (
	waiting callState = iota // not sent
	alone                    // to be run by its caller
	batched                  // under way or done
	gone                     // batched, but its caller has left
)

// run is script.Run, with company.
func (b *batcher) run(ctx context.Context, c *call) *redis.Cmd {
	b.mu.Lock()
	if b.flights < maxFlights {
		b.flights++
		b.mu.Unlock()
		return b.alone(ctx, c)
	}
	c.turn = make(chan struct{}, 1)
	b.waiting = append(b.waiting, c)
	b.mu.Unlock()

	select {
	case <-c.turn:
	case <-ctx.Done():
		if b.leave(ctx, c) {
			return failed(ctx.Err())
		}
		<-c.turn
	}
	if c.cmd != nil {
		return c.cmd
	}
	return b.alone(ctx, c)
}

// alone runs a script outside of a batch.
func (b *batcher) alone(ctx context.Context, c *call) *redis.Cmd {
	defer b.next()
	return c.script.Run(ctx, b.client, c.keys, c.args...)
}

// leave is for a caller whose context has ended: true, if it need not wait for
// its result. What is under way is left by a deadline alone, like any command.
func (b *batcher) leave(ctx context.Context, c *call) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case c.state == waiting:
		b.waiting = slices.DeleteFunc(b.waiting, func(other *call) bool { return other == c })
		return true
	case c.state == batched && errors.Is(ctx.Err(), context.DeadlineExceeded):
		c.state = gone
		return true
	default:
		return false
	}
}

// next ends a flight, and begins the next with all who wait.
func (b *batcher) next() {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch n := min(len(b.waiting), maxCalls); n {
	case 0:
		b.flights--
	case 1:
		c := b.waiting[0]
		b.waiting = nil
		c.state = alone
		c.turn <- struct{}{}
	default:
		calls := b.waiting[:n:n]
		b.waiting = b.waiting[n:]
		for _, c := range calls {
			c.state = batched
		}
		go b.fly(calls)
	}
}

// fly runs many scripts at once. The client's timeouts bound it.
func (b *batcher) fly(calls []*call) {
	allKeys, allArgs := make([]string, 0, 2*len(calls)), make([]any, 0, 4*len(calls))
	for _, c := range calls {
		allKeys = append(allKeys, c.keys...)
		allArgs = append(append(allArgs, batchable[c.script].name), c.args...)
	}
	answers, err := batchScript.Run(context.Background(), b.client, allKeys, allArgs...).Slice()
	if err == nil && len(answers) != len(calls) {
		err = fmt.Errorf("%d answers to %d scripts", len(answers), len(calls))
	}

	b.next()

	b.mu.Lock()
	defer b.mu.Unlock()
	for i, c := range calls {
		cmd := failed(err)
		if err == nil {
			if reply, failed := answers[i].(error); failed {
				cmd.SetErr(reply)
			} else {
				cmd.SetVal(answers[i])
			}
		}
		if c.state == gone && c.script == acquireScript {
			go b.giveBack(c)
		}
		c.cmd = cmd
		c.turn <- struct{}{}
	}
}

// giveBack gives back a lock that was granted when its caller had gone. If that
// fails, it ends by its TTL.
func (b *batcher) giveBack(acquire *call) {
	ctx, cancel := context.WithTimeout(context.Background(), giveBackTimeout)
	defer cancel()
	lockKey, token := acquire.keys[0], acquire.args[0]
	_ = releaseScript.Run(ctx, b.client, []string{lockKey}, token, lockKey).Err()
}

func failed(err error) *redis.Cmd {
	cmd := redis.NewCmd(context.Background())
	cmd.SetErr(err)
	return cmd
}

// function is what a script is within a batch.
type function struct {
	name, source string
	keys, args   int // how many of each
}

// batchable are the scripts that can be run together.
var batchable = map[*redis.Script]function{
	acquireScript: {"a", acquireSource, 2, 3},
	extendScript:  {"e", extendSource, 1, 2},
	releaseScript: {"r", releaseSource, 1, 2},

	handOverScript: {"h", handOverSource, 3, 6},
}

var batchScript = redis.NewScript(batchSource())

// batchSource makes one script of them.
func batchSource() string {
	var s strings.Builder
	s.WriteString("-- Runs many scripts, each as it would run alone.\n--\n" +
		"-- KEYS: those of all in order    ARGV: of each its letter and its own\n" +
		"-- Answers theirs, an error in the place of one that failed.\n" +
		"local scripts, clock = {}, nil\n" +
		"local function time() clock = clock or redis.call('TIME') return clock end\n")
	inOrder := slices.SortedFunc(maps.Values(batchable), func(a, b function) int { return strings.Compare(a.name, b.name) })
	for _, f := range inOrder { // one text in every process
		fmt.Fprintf(&s, "scripts.%s = {%d, %d, function(KEYS, ARGV)\n%s\nend}\n", f.name, f.keys, f.args, strings.ReplaceAll(f.source, "redis.call('TIME')", "time()"))
	}
	s.WriteString(`
local answers, key, arg = {}, 0, 0
while arg < #ARGV do
  local script, keys, args = scripts[ARGV[arg + 1]], {}, {}
  for i = 1, script[1] do keys[i] = KEYS[key + i] end
  for i = 1, script[2] do args[i] = ARGV[arg + 1 + i] end
  key, arg = key + script[1], arg + 1 + script[2]
  local done, answer = pcall(script[3], keys, args)
  if not done and type(answer) ~= 'table' then
    answer = redis.error_reply(tostring(answer))
  end
  answers[#answers + 1] = answer
end
return answers
`)
	return s.String()
}
