package locktest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"flashsale/internal/lock"
)

// What RunProcesses does: so many processes with so many contenders each, for so long.
const (
	processes  = 3
	contenders = 22
	cycles     = 12 // of each contender at most
	contention = 1500 * time.Millisecond
)

// The environment of a contending process.
const (
	envHistory = "FLASHSALE_LOCKTEST_HISTORY" // file to append cycles to
	envStore   = "FLASHSALE_LOCKTEST_STORE"
)

// RunProcesses lets 66 contenders in three processes fight for one key, and
// checks what they saw from outside of the lock. store says where the lock's
// store is; it is called once. open makes a Locker on it in each process, with a
// wait of Patience.
//
// The processes are this test binary, which runs the same test again: nothing of
// the test before RunProcesses may be of consequence.
func RunProcesses(t *testing.T, fenced bool, store func(t *testing.T) string, open func(t *testing.T, store string) lock.Locker) {
	if path := os.Getenv(envHistory); path != "" {
		contend(t, path, open(t, os.Getenv(envStore)))
		return
	}
	path := filepath.Join(t.TempDir(), "history")
	where := store(t)
	var all sync.WaitGroup
	for range processes {
		all.Go(func() {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run="+pattern(t.Name()), "-test.timeout=60s", "-test.count=1")
			cmd.Env = append(os.Environ(), envHistory+"="+path, envStore+"="+where)
			if output, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("a contending process: %v\n%s", err, output)
			}
		})
	}
	all.Wait()
	history := readHistory(t, path)
	if len(history) < processes*contenders/2 {
		t.Errorf("%d cycles in all: that is no contention", len(history))
	}
	exclusive, undecided := Exclusive(history, fenced)
	switch {
	case undecided:
		t.Errorf("no verdict about %d cycles", len(history))
	case !exclusive:
		t.Errorf("two held the lock at a time, or its fences don't grow: %d cycles", len(history))
	}
	t.Logf("%d cycles of %d contenders in %d processes", len(history), processes*contenders, processes)
}

// Patience is how long contenders wait for the lock.
const Patience = 20 * time.Second

// pattern matches one test and its subtests' path alone.
func pattern(name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = "^" + part + "$"
	}
	return strings.Join(parts, "/")
}

// contend is what one of the processes does.
func contend(t *testing.T, path string, locker lock.Locker) {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	ctx, cancel := context.WithTimeout(t.Context(), contention)
	defer cancel()
	var all sync.WaitGroup
	for range contenders {
		all.Go(func() {
			for range cycles {
				c := Cycle{Asked: time.Now().UnixNano()}
				lease, err := locker.Acquire(ctx, "contended")
				c.Granted = time.Now().UnixNano()
				if err != nil {
					if ctx.Err() == nil {
						t.Error(err)
					}
					return
				}
				c.Fence = lease.Fence()
				c.Releasing = time.Now().UnixNano()
				err = lease.Release(t.Context())
				c.Released = time.Now().UnixNano()
				c.Lost, c.Unsure = errors.Is(err, lock.ErrLost), errors.Is(err, lock.ErrUnavailable)
				line, err := json.Marshal(c)
				if err == nil {
					_, err = file.Write(append(line, '\n')) // in one piece: other processes append too
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
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
