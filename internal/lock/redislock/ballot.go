package redislock

import (
	"cmp"
	"context"
	"crypto/rand"
	_ "embed"
	"time"

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed redlock.lua
	redlockSource string

	redlockScript = redis.NewScript(redlockSource)
)

// ballot is what one token asks of all nodes. The nodes are asked at the same
// time, each one in order: a delete never overtakes the grant that it ends, nor
// does anybody wait for a node that is slow.
type ballot struct {
	*Redlock
	lockKey, token string

	last    []chan struct{} // by node: closed when the last question is dealt with
	mayHold []bool          // by node: the token may be there; for its questions alone
}

func (r *Redlock) newBallot(key string) *ballot {
	lockKey, _ := r.options.Keys(key)
	b := &ballot{
		Redlock: r, lockKey: lockKey, token: rand.Text(),
		last: make([]chan struct{}, len(r.nodes)), mayHold: make([]bool, len(r.nodes)),
	}
	for i := range b.last {
		b.last[i] = make(chan struct{})
		close(b.last[i])
	}
	return b
}

// question is put to every node.
type question struct {
	ask   func(ctx context.Context, node int) (bool, error)
	bound time.Duration // of one node's answer

	// patience bounds how long the asker waits; 0 = bound.
	patience time.Duration

	// certain says that the nodes that have not answered can't change it.
	certain func(votes) bool

	// afterYes, if there is one, is done at each node that said no when the
	// others have decided on yes.
	afterYes func(ctx context.Context, node int)
}

// votes are the answers that came before it was certain.
type votes struct {
	yes, no, failed int
	err             error // the first one's that failed
}

type vote struct {
	yes bool
	err error
}

// poll returns when the result is certain, ctx is done or the time is up,
// whichever comes first. Whoever has not answered by then counts as failed, and
// is seen to in the background.
func (b *ballot) poll(ctx context.Context, q question) votes {
	answers := make(chan vote, len(b.nodes))
	decided, yes := make(chan struct{}), false
	for node := range b.nodes {
		previous, done := b.last[node], make(chan struct{})
		b.last[node] = done
		b.background.Go(func() {
			defer close(done)
			<-previous
			bounded, cancel := context.WithTimeout(ctx, q.bound)
			ok, err := q.ask(bounded, node)
			cancel()
			answers <- vote{ok, err}
			if q.afterYes == nil || ok || err != nil {
				return
			}
			if <-decided; yes {
				q.afterYes(ctx, node)
			}
		})
	}
	v := b.count(ctx, q, answers)
	yes = v.yes >= b.quorum()
	close(decided)
	return v
}

func (b *ballot) count(ctx context.Context, q question, answers <-chan vote) (v votes) {
	patience := time.NewTimer(cmp.Or(q.patience, q.bound))
	defer patience.Stop()
	fail := func(n int, err error) {
		v.failed += n
		if v.err == nil {
			v.err = err
		}
	}
	for waiting := len(b.nodes); waiting > 0 && !q.certain(v); waiting-- {
		select {
		case answer := <-answers:
			switch {
			case answer.err != nil:
				fail(1, answer.err)
			case answer.yes:
				v.yes++
			default:
				v.no++
			}
		case <-patience.C:
			fail(waiting, errNodeSilent)
			return v
		case <-ctx.Done():
			fail(waiting, ctx.Err())
			return v
		}
	}
	return v
}

// grant asks for the lock. Whether it is refused by others or by silence, a
// refusal is certain once no quorum is left.
func (b *ballot) grant() question {
	return question{
		ask:     b.grantOn,
		bound:   b.options.NodeTimeout,
		certain: func(v votes) bool { return v.yes >= b.quorum() || b.tooMany(v.no+v.failed) },
	}
}

func (b *ballot) grantOn(ctx context.Context, node int) (bool, error) {
	granted, err := redlockScript.Run(ctx, b.nodes[node], []string{b.lockKey}, b.token, b.options.TTL.Milliseconds()).Bool()
	b.mayHold[node] = b.mayHold[node] || granted || err != nil && mayHaveRun(err)
	return granted, err
}

// extend counts the nodes that have kept the token. Those that have not get it
// once a quorum has said that the lease still runs; till the next extension they
// don't count, so that no lease that has ended comes to life again.
func (b *ballot) extend() question {
	return question{
		ask: func(ctx context.Context, node int) (bool, error) {
			return extendScript.Run(ctx, b.nodes[node], []string{b.lockKey}, b.token, b.options.TTL.Milliseconds()).Bool()
		},
		bound:   b.options.NodeTimeout,
		certain: b.agreed,
		afterYes: func(ctx context.Context, node int) {
			ctx, cancel := context.WithTimeout(ctx, b.options.NodeTimeout)
			defer cancel()
			_, _ = b.grantOn(ctx, node) // if it fails, the next extension sees to it
		},
	}
}

// remove ends the lease everywhere.
func (b *ballot) remove() question {
	return question{ask: b.removeOn, bound: b.options.ReleaseTimeout, certain: b.agreed}
}

// withdraw is remove for who has not won. It waits for a quorum that is rid of
// the token, but not long for nodes that don't answer: nobody relies on them.
func (b *ballot) withdraw() question {
	return question{
		ask: b.removeOn, bound: b.options.ReleaseTimeout, patience: b.options.NodeTimeout,
		certain: func(v votes) bool { return v.yes+v.no >= b.quorum() || b.tooMany(v.failed) },
	}
}

// removeOn tries a bounded number of times; see store.release.
func (b *ballot) removeOn(ctx context.Context, node int) (removed bool, err error) {
	if !b.mayHold[node] {
		return false, nil
	}
	unsure := false
	for attempt := 1; ; attempt++ {
		once, cancel := context.WithTimeout(ctx, b.options.NodeTimeout)
		removed, err = releaseScript.Run(once, b.nodes[node], []string{b.lockKey}, b.token, "").Bool()
		cancel()
		if err == nil {
			b.mayHold[node] = false
			return removed || unsure, nil
		}
		unsure = unsure || mayHaveRun(err)
		if attempt == attempts || !pause(ctx, between(retryMin, retryMax), nil) {
			return false, err
		}
	}
}

// agreed is when the nodes that are left can't change what the others say.
func (b *ballot) agreed(v votes) bool {
	return v.yes >= b.quorum() || b.tooMany(v.no) || b.tooMany(v.failed)
}
