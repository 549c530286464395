package locktest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"flashsale/internal/lock"
)

// Processes is a fight of 66 contenders in three processes for one key, that is
// judged from outside of the lock. In the middle of it one of the processes is
// killed while it holds the lock.
type Processes struct {
	Fenced bool // fences have to grow

	// TTL is that of the Lockers: how long after the kill the others may have
	// to wait.
	TTL time.Duration

	// Store says where the lock's store is. It is called once.
	Store func(t *testing.T) string

	// Open makes a Locker on it in each process, with a wait of Patience.
	Open func(t *testing.T, store string) lock.Locker

	// Reader makes the lock that half of the contenders use instead; they may
	// hold it at a time. nil: there are no readers.
	Reader func(lock.Locker) lock.Locker

	// Broken is what a lock does instead of excluding and going on.
	Broken Fault

	// Work is how long a lease is held. With it, nobody is killed.
	Work time.Duration
}

// Fault is how a lock is broken.
type Fault string

const (
	Stuck   Fault = "nobody gets the lock of who was killed"
	Doubled Fault = "two hold it at a time"
)

const (
	processes  = 3
	contenders = 22
	cycles     = 12                      // of each contender at most
	contention = 1500 * time.Millisecond // and the TTL

	// last is the lease under which the first process is killed.
	last = 2
)

// Patience is how long contenders wait for the lock.
const Patience = 20 * time.Second

// The environment of a contending process.
const (
	envHistory = "FLASHSALE_LOCKTEST_HISTORY" // file to append cycles to
	envStore   = "FLASHSALE_LOCKTEST_STORE"
	envProcess = "FLASHSALE_LOCKTEST_PROCESS" // its number, from 0
)

// Run runs the fight. The processes are this test binary, which runs the same
// test again: nothing of the test before Run may be of consequence.
func (p Processes) Run(t *testing.T) {
	if path := os.Getenv(envHistory); path != "" {
		p.contend(t, path, p.Open(t, os.Getenv(envStore)))
		return
	}
	path := filepath.Join(t.TempDir(), "history")
	where := p.Store(t)
	var all sync.WaitGroup
	all.Go(func() { _ = p.process(t, path, where, 0) }) // see below
	for n := 1; n < processes; n++ {
		all.Go(func() {
			if err := p.process(t, path, where, n); err != nil {
				t.Errorf("a contending process: %v", err)
			}
		})
	}
	all.Wait()
	p.judge(t, readHistory(t, path))
}

// process runs a contending process. The first one is killed when it has
// written that it holds its last lease.
func (p Processes) process(t *testing.T, path, where string, n int) error {
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run="+pattern(t.Name()), "-test.timeout=60s", "-test.count=1")
	cmd.Env = append(os.Environ(), envHistory+"="+path, envStore+"="+where, envProcess+"="+strconv.Itoa(n))
	var output strings.Builder
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Error(err)
		return nil
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	if n == 0 && p.Work == 0 {
		for !holdsItsLast(t, path) {
			select {
			case err := <-ended:
				t.Errorf("the process that was to be killed ended by itself: %v\n%s", err, output.String())
				return nil
			case <-time.After(time.Millisecond):
			}
		}
		_ = cmd.Process.Kill()
	}
	err := <-ended
	if err != nil {
		err = errors.New(err.Error() + "\n" + output.String())
	}
	return err
}

// judge looks for what can't have been, and for what has to have been.
func (p Processes) judge(t *testing.T, history []Cycle) {
	t.Helper()
	var killed *Cycle
	for i, c := range history {
		if p.Broken == Doubled {
			history[i].Lost = false // it was told when all was done
		}
		if c.Released == 0 {
			killed = &history[i]
			killed.Unsure, killed.Releasing = true, killed.Granted+1
		}
	}
	before, after := 0, 0
	next := time.Duration(-1)
	for _, c := range history {
		switch {
		case killed != nil && c.Granted > killed.Granted:
			after++
			if since := time.Duration(c.Granted - killed.Granted); next < 0 || since < next {
				next = since
			}
		default:
			before++
		}
	}
	exclusive, undecided := Exclusive(history, p.Fenced)
	if killed != nil {
		t.Logf("%d cycles before the kill, %d after it, the first of them %v after the last grant", before, after, next)
	}
	switch {
	case undecided:
		t.Errorf("no verdict about %d cycles", len(history))
	case exclusive == (p.Broken == Doubled):
		t.Errorf("exclusive, with growing fences: %v; %d cycles", exclusive, len(history))
	}
	if p.Work > 0 {
		return
	}
	if stuck := after == 0; stuck != (p.Broken == Stuck) {
		t.Errorf("%d grants after the kill", after)
	}
	if p.Broken == "" && len(history) < processes*contenders/2 {
		t.Errorf("%d cycles in all: that is no contention", len(history))
	}
}

// pattern matches one test and its subtests' path alone.
func pattern(name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = "^" + part + "$"
	}
	return strings.Join(parts, "/")
}

// contend is what one of the processes does.
func (p Processes) contend(t *testing.T, path string, locker lock.Locker) {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	note := func(c Cycle) {
		line, err := json.Marshal(c)
		if err == nil {
			_, err = file.Write(append(line, '\n')) // in one piece: other processes append too
		}
		if err != nil {
			t.Error(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), contention+p.TTL)
	defer cancel()
	var (
		all    sync.WaitGroup
		leases atomic.Int64
		doomed = os.Getenv(envProcess) == "0" && p.Work == 0
	)
	for contender := range contenders {
		locker, shared := locker, false
		if p.Reader != nil && contender%2 == 1 {
			locker, shared = p.Reader(locker), true
		}
		all.Go(func() {
			for range cycles {
				c := Cycle{Asked: time.Now().UnixNano(), Shared: shared}
				lease, err := locker.Acquire(ctx, "contended")
				c.Granted = time.Now().UnixNano()
				if err != nil {
					if lock.ContextError(ctx) == nil {
						t.Error(err)
					}
					return
				}
				c.Fence = lease.Fence()
				if doomed && leases.Add(1) == last {
					note(c)
					time.Sleep(time.Hour) // it is killed soon
				}
				time.Sleep(p.Work)
				c.Releasing = time.Now().UnixNano()
				err = lease.Release(t.Context())
				c.Released = time.Now().UnixNano()
				c.Lost, c.Unsure = errors.Is(err, lock.ErrLost), errors.Is(err, lock.ErrUnavailable)
				note(c)
			}
		})
	}
	all.Wait()
}

// holdsItsLast says whether a lease was noted that has no end.
func holdsItsLast(t *testing.T, path string) bool {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	return strings.Contains(string(text), `"Releasing":0,`)
}

func readHistory(t *testing.T, path string) (history []Cycle) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var c Cycle
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		history = append(history, c)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return history
}
