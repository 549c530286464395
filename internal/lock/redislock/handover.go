package redislock

import (
	"context"
	"runtime"
	"time"

	"flashsale/internal/lock"
)

// A holder whose process has somebody else in line passes its lease on to that
// one, without asking Redis (lock cohorting, see [lock.Cohort]): to each
// grant belong as many fences as there can be holders, so that each has its own.
// Who comes with a step for Redis, or would get a lease that is to be extended
// soon, gets a lease of its own in the exchange that ends the one before.
//
// Other processes are not asked meanwhile, so that the number and the time of
// such handovers in a row are bounded. Then the process that has waited longest
// has it: the first in line of each process puts its token in a list in Redis.
// One that isn't in the list yet, but listens, gets a moment in which the lock is
// free.
const (
	maxInARow = 32 // as many fences belong to a grant, see acquire.lua
	maxRow    = 5 * time.Millisecond

	// keptFor is for how long the lock is kept for one in the list to take it:
	// many times what that needs, and what a dead one costs the others.
	keptFor = 100 * time.Millisecond

	// listTTL ends a list that nobody waits in any more, if all of them died. Who
	// waits and isn't in the list takes its place when it asks the next time.
	listTTL = 10 * time.Second

	yieldMin = 500 * time.Microsecond
	yieldMax = time.Millisecond
)

// lineKey is the key of a lock's list. It exists while processes wait.
func lineKey(lockKey string) string { return lockKey + ":line" }

// handsOver is a protocol that can do that.
type handsOver interface {
	protocol

	// handOver ends the lease of token, and gives the lock to next. If listeners
	// isn't negative, the first in the list has it instead, or, if none is there
	// and more than so many hear of it, the lock is free.
	handOver(ctx context.Context, lockKey, fenceKey, token, next string, listeners int) (answer, handOver, error)

	// enlist is acquire for who listens: if it isn't granted the lock, its token
	// is in the list.
	enlist(ctx context.Context, lockKey, fenceKey, token string) (answer, error)

	// delist takes a token out of the list.
	delist(ctx context.Context, lockKey, token string) error

	// granting is the same with a step to be run with every grant.
	granting(first *lock.Step) handsOver
}

// handOver is what became of a lock that next hasn't got.
type handOver int

const (
	freed   handOver = 1
	toOther handOver = 2
)

var _ handsOver = tokens{}

// row is how long a process has been handing over a lock.
type row struct {
	since time.Time
	n     int
}

func newRow() row { return row{since: time.Now(), n: 1} }

func (r row) next() row { return row{since: r.since, n: r.n + 1} }

func (r row) isOver() bool { return r.n >= maxInARow || time.Since(r.since) >= maxRow }

// handed is what goes to the next in line.
type handed struct {
	grant
	row
	token string   // that of the lease that is passed on; "": the grant is its own
	not   handOver // nothing, since others come first: they have it, or have been woken
}

// canPass says whether the next in line can have this very lease: there are
// fences left for a row, and a third of the lease has not passed, in which it is
// extended. Steps have to go to Redis anyway.
func (l *watchdogLease) canPass(next *claim) bool {
	return !l.row.isOver() && time.Until(l.Until()) > l.validity()*2/3 && l.last == nil && next.first == nil
}

// handOver ends the holder's time in favour of the next in line. It does nothing
// and is false if nobody is, or nothing can be handed over.
func (l *watchdogLease) handOver(ctx context.Context) (done bool, err error) {
	protocol, able := l.protocol.(handsOver)
	if !able || l.IsLost() {
		return false, nil
	}
	offer, someone := l.turn.Choose()
	if !someone {
		return false, nil
	}
	next, row, listeners := offer.(*claim), l.row.next(), -1
	if l.canPass(next) {
		l.turn.HandOver(handed{grant: grant{granted: true, fence: l.fence + 1, until: l.Until()}, row: row, token: l.token})
		runtime.Gosched() // the next one goes first: others wait for it, nobody for this one
		return true, nil
	}
	if l.row.isOver() {
		row, listeners = newRow(), l.watchdog.listener.own(l.lockKey)
	}
	if next.first != nil {
		protocol = protocol.granting(next.first)
	}
	once, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.ReleaseTimeout)
	defer cancel()
	sent := time.Now()
	answer, not, err := protocol.handOver(once, l.lockKey, l.fenceKey, l.token, next.token, listeners)
	switch {
	case err != nil: // the next one can find out whether it has the lock
		l.turn.Leave()
		return true, l.endUnsure(ctx, mayHaveRun(err))
	case answer.granted:
		l.turn.HandOver(handed{grant: grant{granted: true, fence: answer.fence, until: sent.Add(l.validity()), first: answer.first}, row: row})
		runtime.Gosched()
		return true, nil
	case not != 0:
		l.turn.HandOver(handed{not: not})
		return true, nil
	default:
		l.Lose()
		return true, l.ended(lock.ErrLost)
	}
}

// take makes a grant of what was handed over, or wins one.
func (w *Watchdog) take(ctx context.Context, c *claim, turn *lock.Turn, deadline time.Time) (grant, row, error) {
	c.unsure = turn.Chosen()
	got, _ := turn.Handed().(handed)
	own := c.token
	if got.token != "" {
		c.token = got.token
	}
	if over := lock.ContextError(ctx); over != nil && c.unsure {
		return grant{}, row{}, c.giveUp(ctx, over)
	}
	if got.granted && time.Now().Before(got.until) {
		return got.grant, got.row, nil
	}
	if got.token != "" { // this process was stopped; asking under that token would bring used fences again
		c.release(ctx, c.lockKey, c.token)
		c.token = own
	}
	if got.not == freed && !pause(ctx, min(between(yieldMin, yieldMax), time.Until(deadline)), nil) {
		return grant{}, row{}, c.giveUp(ctx, ctx.Err())
	}
	c.behind = got.not == toOther
	won, err := c.win(ctx, deadline, w.listener)
	return won, newRow(), err
}
