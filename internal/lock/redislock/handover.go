package redislock

import (
	"context"
	"runtime"
	"time"

	"flashsale/internal/lock"
)

// A holder whose process has somebody else in line gives that one the lock in
// the exchange that ends its own lease: each still has a token and a fence of its
// own, for half of the round trips. Other processes are not asked meanwhile, so
// that the number and the time of such handovers in a row are bounded; then the
// lock is free for them, if there are any, and this process waits a moment.
const (
	maxInARow = 16
	maxRow    = 5 * time.Millisecond

	yieldMin = 500 * time.Microsecond
	yieldMax = time.Millisecond
)

// handsOver is a protocol that can do that.
type handsOver interface {
	// handOver ends the lease of token, and gives the lock to next. If listeners
	// isn't negative and more than so many hear of it, the lock is free instead.
	handOver(ctx context.Context, lockKey, fenceKey, token, next string, listeners int) (answer answer, released bool, err error)
}

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
	yield bool // nothing; and others have been woken, who come first
}

// handOver ends the lease in favour of the next in line. It does nothing and is
// false if nobody is, or nothing can be handed over.
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
	if l.row.isOver() {
		row, listeners = newRow(), l.watchdog.listener.own(l.lockKey)
	}
	once, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.ReleaseTimeout)
	defer cancel()
	sent := time.Now()
	answer, released, err := protocol.handOver(once, l.lockKey, l.fenceKey, l.token, next.token, listeners)
	switch {
	case err != nil: // the next one can find out whether it has the lock
		l.turn.Leave()
		return true, l.endUnsure(ctx, mayHaveRun(err))
	case answer.granted:
		l.turn.HandOver(handed{grant: grant{granted: true, fence: answer.fence, until: sent.Add(l.validity())}, row: row})
		runtime.Gosched() // the next one goes first: others wait for it, nobody for this one
		return true, nil
	case released:
		l.turn.HandOver(handed{yield: true})
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
	if over := lock.ContextError(ctx); over != nil && c.unsure {
		return grant{}, row{}, c.giveUp(ctx, over)
	}
	if got.granted && time.Now().Before(got.until) {
		return got.grant, got.row, nil
	}
	if got.yield && !pause(ctx, min(between(yieldMin, yieldMax), time.Until(deadline)), nil) {
		return grant{}, row{}, c.giveUp(ctx, ctx.Err())
	}
	won, err := c.win(ctx, deadline, w.listener)
	return won, newRow(), err
}
