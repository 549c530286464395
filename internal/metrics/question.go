package metrics

import (
	"context"
	"sync"
	"time"
)

// scrapeTimeout bounds what a scrape asks of a server. One that is away leaves
// its metrics out: a zero would say that there is no backlog.
const scrapeTimeout = 2 * time.Second

// question is what a scrape asks of a server. It is asked by one goroutine at a
// time, and whoever scrapes meanwhile shares the answer: a server that hangs
// holds up no scrape for longer than scrapeTimeout, even when its client ignores
// the context, and no goroutines pile up behind it.
type question[T any] struct {
	ask func(context.Context) (T, error)

	mu   sync.Mutex
	open *answer[T] // nil: nobody asks
}

type answer[T any] struct {
	here  chan struct{} // closed when it is
	value T
	err   error
}

// answer is not known when the server failed, or took too long.
func (q *question[T]) answer() (value T, known bool) {
	a := q.pose()
	patience := time.NewTimer(scrapeTimeout)
	defer patience.Stop()
	select {
	case <-a.here:
		return a.value, a.err == nil
	case <-patience.C:
		return value, false
	}
}

func (q *question[T]) pose() *answer[T] {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.open != nil {
		return q.open
	}
	a := &answer[T]{here: make(chan struct{})}
	q.open = a
	go func() {
		defer close(a.here)
		ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
		defer cancel()
		a.value, a.err = q.ask(ctx)
		q.mu.Lock()
		defer q.mu.Unlock()
		q.open = nil
	}()
	return a
}
