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

// run is tokens.run for the script that ends the lease.
func (l *last) run(ctx context.Context, client redis.Cmdable, ending *call) *redis.Cmd {
	if l.done { // an answer to the step, but none that could be read to the rest
		return ending.script.Run(ctx, client, ending.keys, ending.args...)
	}
	script := fused(l.step.Script, batchable[ending.script].source)
	keys := append(append(make([]string, 0, len(ending.keys)+len(l.step.Keys)), ending.keys...), l.step.Keys...)
	args := append(append(append(make([]any, 0, 1+len(ending.args)+len(l.step.Args)), len(ending.keys), len(ending.args)), ending.args...), l.step.Args...)
	answers, err := script.Run(ctx, client, keys, args...).Slice()
	if err == nil && len(answers) != 2 {
		err = errors.New("a last step and a release have not two answers")
	}
	cmd := failed(err)
	if err != nil {
		l.err = err
		if mayHaveRun(err) {
			l.lost = err
		}
		return cmd
	}
	l.done, l.answer = true, answers[0]
	if l.err, _ = answers[0].(error); l.err != nil {
		l.answer = nil
	}
	if refused, ok := answers[1].(error); ok {
		cmd.SetErr(refused)
	} else {
		cmd.SetVal(answers[1])
	}
	return cmd
}

// result is what became of the step. Of several errors, the one that leaves it
// open whether the step has run counts.
func (l *last) result() (any, error) {
	if !l.done && l.lost != nil {
		return nil, l.lost
	}
	return l.answer, l.err
}

// fusions are the scripts made of two, by their texts.
var fusions sync.Map // [2]string -> *redis.Script

// fused is the script that runs step, and then ending.
//
//	KEYS: those of ending, those of step
//	ARGV: how many keys ending has, how many arguments, those of ending, those of step
//
// It answers both, an error in the place of one that failed.
func fused(step, ending string) *redis.Script {
	texts := [2]string{step, ending}
	if script, ok := fusions.Load(texts); ok {
		return script.(*redis.Script)
	}
	script, _ := fusions.LoadOrStore(texts, redis.NewScript(`-- A holder's last step, then what ends its lease.
local function step(KEYS, ARGV)
`+step+`
end
local function ending(KEYS, ARGV)
`+ending+`
end
local function run(script, keys, args)
  local done, answer = pcall(script, keys, args)
  if not done and type(answer) ~= 'table' then answer = redis.error_reply(tostring(answer)) end
  return answer or false -- nil would end the list of answers
end
local keys, args = tonumber(ARGV[1]), tonumber(ARGV[2])
local function part(list, first, last)
  local some = {}
  for i = first, last do some[#some + 1] = list[i] end
  return some
end
local answer = run(step, part(KEYS, keys + 1, #KEYS), part(ARGV, args + 3, #ARGV))
return {answer, run(ending, part(KEYS, 1, keys), part(ARGV, 3, args + 2))}
`))
	return script.(*redis.Script)
}
