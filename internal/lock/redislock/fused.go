package redislock

import (
	"context"
	"errors"
	"sync"

	"github.com/redis/go-redis/v9"

	"flashsale/internal/lock"
)

// last is a holder's last step, which goes along with whatever ends its lease.
// The two are one script: either both have run or none has, and nothing comes in
// between.
type last struct {
	step lock.Step

	done   bool
	answer any
	err    error // of an answer that is one, or of the latest attempt without an answer
	lost   error // of an attempt that may have run
}

// learn notes what an attempt came to.
func (l *last) learn(answer any, err error) {
	if err != nil {
		l.err = err
		if mayHaveRun(err) {
			l.lost = err
		}
		return
	}
	l.done, l.answer = true, answer
	if l.err, _ = answer.(error); l.err != nil {
		l.answer = nil
	}
}

// result is what became of the step. Of several errors, the one that leaves it
// open whether the step has run counts.
func (l *last) result() (any, error) {
	if !l.done && l.lost != nil {
		return nil, l.lost
	}
	return l.answer, l.err
}

// runWith runs a script after the last step of who has the lock, unless that is
// nil or done, and before the first step of who is granted it, if there is one.
func (c *call) runWith(ctx context.Context, client redis.Cmdable, last *last) *redis.Cmd {
	var before, after lock.Step
	if last != nil && !last.done { // done: it was answered, but nothing that could be read to the rest
		before = last.step
	}
	if c.first != nil {
		after = *c.first
	}
	keys := make([]string, 0, len(before.Keys)+len(c.keys)+len(after.Keys))
	keys = append(append(append(keys, before.Keys...), c.keys...), after.Keys...)
	args := make([]any, 0, 4+len(before.Args)+len(c.args)+len(after.Args))
	args = append(args, len(before.Keys), len(before.Args), len(c.keys), len(c.args))
	args = append(append(append(args, before.Args...), c.args...), after.Args...)

	answers, err := fused(before.Script, textOf(c.script), after.Script).Run(ctx, client, keys, args...).Slice()
	if err == nil && len(answers) != 3 {
		err = errors.New("a script of three has not three answers")
	}
	cmd := failed(err)
	if err != nil {
		answers = make([]any, 3)
	} else if refused, ok := answers[1].(error); ok {
		cmd.SetErr(refused)
	} else {
		cmd.SetVal(answers[1])
	}
	if before.Script != "" {
		last.learn(answers[0], err)
	}
	if _, refused := answers[2].(error); !refused {
		c.answer = answers[2]
	}
	return cmd
}

// textOf is the text of one of this package's scripts.
func textOf(script *redis.Script) string {
	if script == enlistScript {
		return enlistSource + acquireSource
	}
	return batchable[script].source
}

// fusions are the scripts made of three, by their texts.
var fusions sync.Map // [3]string -> *redis.Script

// fused is the script that runs the last step of who has the lock, then what ends
// or grants a lease, and, if that grants one, the first step of who gets it, with
// the fence before its arguments. A step that is "" is none.
//
//	KEYS: those of each
//	ARGV: how many keys and how many arguments the last step has, the same of
//	      the middle, the arguments of each
//
// It answers all three, an error in the place of one that failed, nil in that of
// one that has not run.
func fused(last, middle, first string) *redis.Script {
	texts := [3]string{last, middle, first}
	if script, ok := fusions.Load(texts); ok {
		return script.(*redis.Script)
	}
	script, _ := fusions.LoadOrStore(texts, redis.NewScript(`-- The last step of a holder, what ends or grants a lease, the first step of the next holder.
local function last(KEYS, ARGV)
`+last+`
end
local function middle(KEYS, ARGV)
`+middle+`
end
local function first(KEYS, ARGV)
`+first+`
end
local usedKeys, usedArgs = 0, 4
local function run(script, keys, args, fence)
  local ownKeys, ownArgs = {}, {fence}
  for i = 1, keys do ownKeys[i] = KEYS[usedKeys + i] end
  for i = 1, args do ownArgs[#ownArgs + 1] = ARGV[usedArgs + i] end
  usedKeys, usedArgs = usedKeys + keys, usedArgs + args
  local done, answer = pcall(script, ownKeys, ownArgs)
  if not done and type(answer) ~= 'table' then answer = redis.error_reply(tostring(answer)) end
  return answer or false -- nil would end the list of answers
end
local ended = run(last, tonumber(ARGV[1]), tonumber(ARGV[2]))
local answer, begun = run(middle, tonumber(ARGV[3]), tonumber(ARGV[4])), false
if type(answer) == 'string' then
  begun = run(first, #KEYS - usedKeys, #ARGV - usedArgs, answer)
end
return {ended, answer, begun}
`))
	return script.(*redis.Script)
}
