package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"
)

// envTask tells a process of this program that it is a contending one.
const envTask = "PEERBENCH_TASK"

// task is what a contending process is to do.
type task struct {
	Lock    string
	Addr    string
	Keys    []string // one for all contenders, or one for each
	Workers int
	First   int // number of the first contender, over all processes
	Witness string
	Window  time.Duration
}

// outcome is what it has seen.
type outcome struct {
	Cycles  uint64          // all of them, of the contenders together
	InTime  uint64          // those that ended within the window
	Stuck   uint64          // contenders that were not granted the lock even after it
	WaitsNs []time.Duration // of all
}

// verify: contenders that all got stuck make no cycle, and that is an outcome too.
func (o outcome) verify() error {
	if o.Cycles == 0 && o.Stuck == 0 {
		return errors.New("a contending process made no cycle")
	}
	return nil
}

const (
	ready = "ready"
	begin = "begin"

	warmUp    = 20      // cycles of each contender, on a key of its own
	maxCycles = 200_000 // of each contender

	// maxDrain is how long whoever waits when the window closes may go on.
	maxDrain = 3 * time.Second
)

// contender contends: it warms up, says that it is ready, and begins when it is told
// to. It ends with its parent, whose end closes its standard input.
func contender(ctx context.Context, encoded string, stdin io.Reader, stdout, stderr io.Writer) int {
	err := func() error {
		var t task
		if err := json.Unmarshal([]byte(encoded), &t); err != nil {
			return err
		}
		told := bufio.NewScanner(stdin)
		return contend(ctx, t, func() error {
			fmt.Fprintln(stdout, ready)
			if !told.Scan() || told.Text() != begin {
				return fmt.Errorf("the parent has gone")
			}
			return nil
		}, func(o outcome) error { return json.NewEncoder(stdout).Encode(o) })
	}()
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	return 0
}

// contend runs a task. Who is waiting when the window closes is still granted
// the lock: a wait that was begun counts in full. Who isn't granted it even then
// is stuck, and counts as having waited until it gave up. The outcome is told
// before anything is closed: a lock that hangs then has been measured.
func contend(ctx context.Context, t task, await func() error, tell func(outcome) error) error {
	contestant, ok := named(t.Lock)
	if !ok {
		return fmt.Errorf("no lock %q", t.Lock)
	}
	l, err := contestant.open(t.Addr)
	if err != nil {
		return err
	}
	defer l.close()
	w, err := openWitness(t.Witness, len(t.Keys))
	if err != nil {
		return err
	}
	defer w.close()
	if err := t.each(func(worker int) error { return warm(ctx, l, "warm-"+strconv.Itoa(t.First+worker)) }); err != nil {
		return fmt.Errorf("warming up: %w", err)
	}
	if err := await(); err != nil {
		return err
	}

	var o outcome
	var mu sync.Mutex
	end := time.Now().Add(t.Window)
	ctx, cancel := context.WithDeadline(ctx, end.Add(maxDrain))
	defer cancel()
	err = t.each(func(worker int) error {
		key := worker % len(t.Keys)
		waits, inTime, asked, err := cycles(ctx, l, t.Keys[key], &w.keys[key], uint64(t.First+worker+1), end)
		mu.Lock()
		defer mu.Unlock()
		o.WaitsNs = append(o.WaitsNs, waits...)
		o.Cycles += uint64(len(waits))
		o.InTime += inTime
		if err != nil && !time.Now().Before(end.Add(maxDrain)) || ctx.Err() != nil { // a client may be quicker than ctx to see its end
			o.WaitsNs = append(o.WaitsNs, time.Since(asked))
			o.Stuck++
			return nil
		}
		if err != nil {
			err = fmt.Errorf("contender %d, after %d cycles: %w", t.First+worker, len(waits), err)
		}
		return err
	})
	if err != nil {
		return err
	}
	return tell(o)
}

// each runs f for each contender at the same time.
func (t task) each(f func(worker int) error) error {
	failed := make(chan error, t.Workers)
	for worker := range t.Workers {
		go func() { failed <- f(worker) }()
	}
	var first error
	for range t.Workers {
		if err := <-failed; first == nil {
			first = err
		}
	}
	return first
}

// warm makes connections and loads scripts.
func warm(ctx context.Context, l locker, key string) error {
	for range warmUp {
		h, err := l.acquire(ctx, key)
		if err != nil {
			return err
		}
		if err := h.release(ctx); err != nil {
			return err
		}
	}
	return nil
}

// cycles are those of one contender; asked is when it last did.
func cycles(ctx context.Context, l locker, key string, g *guarded, who uint64, end time.Time) (waits []time.Duration, inTime uint64, asked time.Time, err error) {
	waits = make([]time.Duration, 0, 4096)
	for asked = time.Now(); asked.Before(end) && len(waits) < maxCycles; {
		h, err := l.acquire(ctx, key)
		if err != nil {
			return waits, inTime, asked, err
		}
		waits = append(waits, time.Since(asked))
		g.hold(who, h.fence())
		if err := h.release(ctx); err != nil {
			return waits, inTime, asked, err
		}
		if asked = time.Now(); !asked.After(end) {
			inTime++
		}
	}
	return waits, inTime, asked, nil
}
