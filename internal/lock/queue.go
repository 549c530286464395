package lock

import (
	"context"
	"sync"
	"time"
)

// Queue lets one caller a key pass at a time, in the order in which they came.
// It is all that Local needs, and what a lock on a server puts in front, so
// that the callers of one process don't fight each other over the network.
//
// The zero value is ready. A key that nobody holds or waits for takes no memory.
type Queue struct {
	mu   sync.Mutex
	last map[string]*Turn // the end of each key's line; its front is the holder
}

// Turn is a place in the line of a key.
type Turn struct {
	queue      *Queue
	key        string
	prev, next *Turn
	ready      chan struct{} // closed when this turn comes; nil for who found no line
	left       bool

	offer  any  // what it shows to who may hand over to it
	chosen bool // the one before is about to hand over: it can't give up any more
	handed any  // what it got from the one before
}

// Enter waits for the caller's turn, for at most wait: none at all when that is
// zero or negative. Its error is ErrNotAcquired or the context's own.
func (q *Queue) Enter(ctx context.Context, key string, wait time.Duration) (*Turn, error) {
	return q.EnterWith(ctx, key, wait, nil)
}

// EnterWith is Enter for who can take over what the one before it holds; offer is
// what that one needs to know, see Choose. It may come back with a turn, and
// something Handed over, a little later than wait and ctx say: what is under way
// is not left lying about.
func (q *Queue) EnterWith(ctx context.Context, key string, wait time.Duration, offer any) (*Turn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	turn, first := q.join(key, wait > 0, offer)
	if first {
		return turn, nil
	}
	if turn == nil {
		return nil, ErrNotAcquired
	}

	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-turn.ready:
		return turn, nil
	case <-timer.C:
	case <-ctx.Done():
	}
	if !turn.giveUp() {
		<-turn.ready
		return turn, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return nil, ErrNotAcquired
}

// join puts a turn at the end of the line. Who finds a line and isn't ready to
// wait gets none.
func (q *Queue) join(key string, patient bool, offer any) (turn *Turn, first bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	prev := q.last[key]
	if prev != nil && !patient {
		return nil, false
	}
	turn = &Turn{queue: q, key: key, prev: prev, offer: offer}
	if prev != nil {
		prev.next = turn
		turn.ready = make(chan struct{})
	}
	if q.last == nil {
		q.last = make(map[string]*Turn)
	}
	q.last[key] = turn
	return turn, prev == nil
}

// Choose is for the holder, who then has to call HandOver or Leave: the next in
// line waits for that from now on. It returns what that one offers; false, if
// nobody is in line, or the turn has ended.
func (t *Turn) Choose() (offer any, ok bool) {
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	if t.left || t.next == nil {
		return nil, false
	}
	t.next.chosen = true
	return t.next.offer, true
}

// giveUp is Leave, also when the turn has come just now: the next one gets it.
// It is false for one that is about to be handed something.
func (t *Turn) giveUp() bool {
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	if !t.chosen {
		t.leave(nil)
	}
	return !t.chosen
}

// Chosen says whether the holder before has begun to hand over, which may have
// had an effect even if nothing was Handed.
func (t *Turn) Chosen() bool {
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	return t.chosen
}

// Handed is what the holder before handed over; nil: nothing.
func (t *Turn) Handed() any { return t.handed }

// HandOver is Leave, and the next in line has handed.
func (t *Turn) HandOver(handed any) {
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	t.leave(handed)
}

// Leave ends the turn, so that the next in line has it. Only the first call
// does anything.
func (t *Turn) Leave() { t.HandOver(nil) }

func (t *Turn) leave(handed any) {
	q := t.queue
	if t.left {
		return
	}
	t.left = true

	switch {
	case t.next != nil:
		t.next.prev = t.prev
	case t.prev != nil:
		q.last[t.key] = t.prev
	default:
		delete(q.last, t.key)
	}
	switch {
	case t.prev != nil:
		t.prev.next = t.next // gave up while waiting
	case t.next != nil:
		t.next.handed = handed
		close(t.next.ready)
	}
}
