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
}

// Enter waits for the caller's turn, for at most wait: none at all when that is
// zero or negative. Its error is ErrNotAcquired or the context's own.
func (q *Queue) Enter(ctx context.Context, key string, wait time.Duration) (*Turn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	turn, first := q.join(key, wait > 0)
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
	turn.Leave() // also when the turn has come just now: the next one gets it
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return nil, ErrNotAcquired
}

// join puts a turn at the end of the line. Who finds a line and isn't ready to
// wait gets none.
func (q *Queue) join(key string, patient bool) (turn *Turn, first bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	prev := q.last[key]
	if prev != nil && !patient {
		return nil, false
	}
	turn = &Turn{queue: q, key: key, prev: prev}
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

// Leave ends the turn, so that the next in line has it. Only the first call
// does anything.
func (t *Turn) Leave() {
	q := t.queue
	q.mu.Lock()
	defer q.mu.Unlock()
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
		close(t.next.ready)
	}
}
