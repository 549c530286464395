package syncer_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"flashsale/internal/stock"
	"flashsale/internal/stock/stocktest"
	"flashsale/internal/syncer"
)

// held lets the first settlement of a world wait until it is released; entered
// is closed once it is there.
func held(w *world) (entered, release chan struct{}) {
	entered, release = make(chan struct{}), make(chan struct{})
	first := true
	w.during = func() {
		w.Lock()
		mine := first
		first = false
		w.Unlock()
		if mine {
			close(entered)
			<-release
		}
	}
	return entered, release
}

// fetched counts the batches that were handed out.
func fetched(w *world) *int {
	n := new(int)
	w.hook = func(op string) stocktest.Fault { // the lock is held
		if op == "fetch" {
			*n++
		}
		return stocktest.Fine
	}
	return n
}

// While a batch is settled the next one is fetched, and no more than that one:
// what a syncer holds is bounded, however slow the ledger is.
func TestOneBatchIsFetchedAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		want := load(w)
		n := fetched(w)
		entered, release := held(w)
		p := w.start(t, nil)
		<-entered
		synctest.Wait()
		if *n != 2 {
			t.Errorf("%d batches were fetched while the first one was settled, want 2", *n)
		}
		if w.committed != [partitions]int64{} {
			t.Errorf("committed %v before anything was settled", w.committed)
		}
		close(release)
		w.awaitCommitted(t)
		p.stop()
		w.check(t, want, "unknown_sale", "unknown_version")
	})
}

// The batch in hand is finished; the one behind it is left to who comes next.
func TestStopLeavesTheBatchThatIsAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		want := load(w)
		entered, release := held(w)
		p := w.start(t, nil)
		<-entered
		synctest.Wait() // the next batch is there
		p.life.Cancel()
		synctest.Wait()
		close(release)
		<-p.done
		if got := w.committed[0] + w.committed[1]; got != 5 || !p.closed {
			t.Errorf("%d messages committed, want the 5 in hand; source closed %v", got, p.closed)
		}
		if len(w.sizes) != 1 {
			t.Errorf("%d batches settled, want 1", len(w.sizes))
		}
		second := w.start(t, nil)
		w.awaitCommitted(t)
		second.stop()
		w.check(t, want, "unknown_sale", "unknown_version")
	})
}

// late is a source that has messages, and hands them out when the syncer has
// been told to stop, from the second time on.
type late struct {
	*process
	calls   int
	stopped chan struct{}
}

func (l *late) Fetch(ctx context.Context, max int, linger time.Duration) ([]stock.Message, error) {
	if l.calls++; l.calls > 1 {
		<-l.stopped
		ctx = context.WithoutCancel(ctx)
	}
	return l.process.Fetch(ctx, max, linger)
}

// A batch that comes when the one before it has failed for the last time is not
// begun. (Whether it would be is a matter of chance, hence the repetitions.)
func TestABatchThatComesTooLateIsNotBegun(t *testing.T) {
	for range 30 {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			want := load(w)
			failing := true
			w.hook = func(op string) stocktest.Fault {
				if op == "settle" && failing {
					return stocktest.Refused
				}
				return stocktest.Fine
			}
			source := &late{stopped: make(chan struct{})}
			p := w.start(t, func(o *syncer.Options) {
				source.process = o.Source.(*process)
				o.Source = source
			})
			synctest.Wait()
			p.life.Cancel()
			synctest.Wait() // the batch in hand has been given up
			w.Lock()
			failing = false
			w.Unlock()
			close(source.stopped)
			<-p.done
			if w.committed != [partitions]int64{} || len(w.sizes) != 0 {
				t.Errorf("committed %v, %d batches settled", w.committed, len(w.sizes))
			}
			second := w.start(t, nil)
			w.awaitCommitted(t)
			second.stop()
			w.check(t, want, "unknown_sale", "unknown_version")
		})
	}
}

// Killed while a batch is settled and the next one is there: neither is lost,
// whether or not the ledger has the first.
func TestKilledWithABatchAhead(t *testing.T) {
	for name, after := range map[string]bool{"before it is stored": false, "after it is stored": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				want := load(w)
				entered, release := held(w)
				p := w.start(t, nil)
				<-entered
				synctest.Wait()
				if after {
					w.hook = func(op string) stocktest.Fault {
						if op == "settle" {
							return stocktest.DiesAfter
						}
						return stocktest.Fine
					}
				} else {
					p.life.Kill()
				}
				close(release)
				<-p.done
				if w.committed != [partitions]int64{} {
					t.Errorf("a dead syncer has committed %v", w.committed)
				}
				w.hook = func(string) stocktest.Fault { return stocktest.Fine }
				second := w.start(t, nil)
				w.awaitCommitted(t)
				second.stop()
				w.check(t, want, "unknown_sale", "unknown_version")
			})
		})
	}
}

// A rebalance while one batch is settled and the next one is there: the member
// gets everything again that is not committed, and has the same twice.
func TestRebalanceWithABatchAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		want := load(w)
		entered, release := held(w)
		p := w.start(t, nil)
		<-entered
		synctest.Wait()
		w.Lock()
		p.next = w.committed
		w.Unlock()
		second := w.start(t, nil) // has got them too
		synctest.Wait()
		close(release)
		w.awaitCommitted(t)
		synctest.Wait()
		p.stop()
		second.stop()
		w.check(t, want, "unknown_sale", "unknown_version")
	})
}

// The ledger is away for longer than a transaction may last; what is ahead waits.
func TestLedgerAwayWithABatchAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		want := load(w)
		n := fetched(w)
		count := w.hook
		back := time.Now().Add(10 * time.Minute)
		w.hook = func(op string) stocktest.Fault {
			if op == "settle" && time.Now().Before(back) {
				return stocktest.Refused
			}
			return count(op)
		}
		p := w.start(t, nil)
		time.Sleep(time.Until(back) - time.Second) // fake
		synctest.Wait()
		if *n != 2 || w.committed != [partitions]int64{} || len(w.dead) != 0 {
			t.Errorf("%d batches fetched, want 2; committed %v, buried %v", *n, w.committed, w.dead)
		}
		w.awaitCommitted(t)
		p.stop()
		w.check(t, want, "unknown_sale", "unknown_version")
		if got := slices.Max(w.sizes); got > 5 {
			t.Errorf("a batch of %d events, want 5 at most", got)
		}
	})
}
