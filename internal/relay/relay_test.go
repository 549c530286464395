package relay_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"flashsale/internal/lock"
	"flashsale/internal/relay"
	"flashsale/internal/stock/stocktest"
)

// load puts three sales into two shards: one event an entry, and several.
func load(w *world) map[string]int {
	for i := range 6 {
		w.add(0, "sale-0", i, 1)
		w.add(1, "sale-1", 3*i, 3)
		w.add(0, "sale-2", 2*i, 2)
	}
	return map[string]int{"sale-0": 6, "sale-1": 18, "sale-2": 12}
}

// One relay fails at one step, in every way and at every step; another is
// ready to take over.
func TestEveryStepMayFail(t *testing.T) {
	stocktest.EveryStep(t, 20, func(t *testing.T, step int, fault stocktest.Fault) (fired bool) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			sales := load(w)
			inject := stocktest.FailAt(step, fault, &fired)
			w.hook = func(string, int) stocktest.Fault { return inject() }
			first := w.start(t, "first", nil)
			second := w.start(t, "second", nil)
			w.awaitDrained(t)
			first.stop()
			second.stop()
			w.check(t, sales)
		})
		return fired
	})
}

// Without any election the relays only repeat one another.
func TestTwoLeadersAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		sales := load(w)
		unlocked := func(o *relay.Options) { o.Locker = lock.None{}; o.Batch = 1 }
		first, second := w.start(t, "first", unlocked), w.start(t, "second", unlocked)
		w.awaitDrained(t)
		first.stop()
		second.stop()
		w.check(t, sales)
	})
}

func TestAcknowledgedEntriesAreNotPublishedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		sales := load(w)
		deletions := 0
		w.hook = func(op string, _ int) stocktest.Fault {
			if op == "delete" {
				if deletions++; deletions <= 20 {
					return stocktest.Refused
				}
			}
			return stocktest.Fine
		}
		p := w.start(t, "only", nil)
		w.awaitDrained(t)
		p.stop()
		w.check(t, sales)
		for event, times := range w.published {
			if times != 1 {
				t.Errorf("%s published %d times", event, times)
			}
		}
	})
}

// The relay is told to stop while Kafka is acknowledging: the entries go all the
// same, so that the next leader has nothing to repeat.
func TestStopDeletesWhatIsAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		ctx, cancel := context.WithCancel(t.Context())
		w.hook = func(op string, _ int) stocktest.Fault {
			if op == "publish" {
				cancel()
			}
			return stocktest.Fine
		}
		w.add(0, "sale-0", 0, 1)
		p := &process{world: w, life: stocktest.Process{World: &w.World}}
		r, err := relay.New(relay.Options{Outbox: p, Publisher: p, Locker: lock.None{}, Shards: 1})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if len(w.topic) != 1 || len(w.entries[0]) != 0 {
			t.Errorf("%d published, %d left", len(w.topic), len(w.entries[0]))
		}
	})
}

func TestBatchesAreOfWholeEntries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		for i := range 10 {
			w.add(0, "sale-0", 3*i, 3)
		}
		w.add(0, "sale-0", 30, 9) // more than a batch by itself
		p := w.start(t, "only", func(o *relay.Options) { o.Batch = 7; o.Shards = 1 })
		w.awaitDrained(t)
		p.stop()
		w.check(t, map[string]int{"sale-0": 39})
		for _, n := range w.batches {
			if n > 7 && n != 9 || n%3 != 0 {
				t.Errorf("batches of %v", w.batches)
			}
		}
	})
}

func TestOneShardDoesNotHoldUpAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		load(w)
		w.hook = func(op string, shard int) stocktest.Fault {
			if op == "publish" && shard == 0 {
				return stocktest.Refused
			}
			return stocktest.Fine
		}
		p := w.start(t, "only", nil)
		w.Await(t, "shard 1 drained", func() bool { return len(w.entries[1]) == 0 })
		w.Lock()
		stuck := len(w.entries[0])
		w.Unlock()
		if stuck != 12 {
			t.Errorf("%d entries left in the shard whose messages are refused, want all 12", stuck)
		}
		p.stop()
	})
}

func TestHandOver(t *testing.T) {
	for name, leave := range map[string]func(*process){
		"stopped": (*process).stop,
		"killed":  func(p *process) { p.life.Kill() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				first := w.start(t, "first", nil)
				synctest.Wait() // the first leads both shards
				second := w.start(t, "second", nil)
				synctest.Wait()
				leave(first)
				began := time.Now()
				sales := load(w)
				w.awaitDrained(t)
				took, bound := time.Since(began), 500*time.Millisecond
				if name == "killed" {
					bound += 5 * time.Second // the lease's TTL
				}
				if took > bound {
					t.Errorf("taken over after %v", took)
				}
				second.stop()
				<-first.done
				w.check(t, sales)
			})
		})
	}
}

func TestStopsPromptly(t *testing.T) {
	for name, hook := range map[string]func(string, int) stocktest.Fault{
		"idle":              func(string, int) stocktest.Fault { return stocktest.Fine },
		"everything broken": func(string, int) stocktest.Fault { return stocktest.Refused },
		"kafka broken": func(op string, _ int) stocktest.Fault {
			if op == "publish" {
				return stocktest.Refused
			}
			return stocktest.Fine
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.hook = hook
				if name != "idle" {
					load(w)
				}
				p := w.start(t, "only", nil)
				time.Sleep(time.Minute) // fake
				began := time.Now()
				p.stop()
				if took := time.Since(began); took > 250*time.Millisecond {
					t.Errorf("took %v", took)
				}
			})
		})
	}
}

// Ten minutes without Kafka are bridged with bounded work, and its return is noticed soon.
func TestKafkaAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		sales := load(w)
		back := time.Now().Add(10 * time.Minute)
		attempts := 0
		w.hook = func(op string, _ int) stocktest.Fault {
			if op == "publish" && time.Now().Before(back) {
				attempts++
				return stocktest.Refused
			}
			return stocktest.Fine
		}
		first, second := w.start(t, "first", nil), w.start(t, "second", nil)
		w.awaitDrained(t)
		if late := time.Since(back); late > 5*time.Second {
			t.Errorf("drained %v after Kafka was back", late)
		}
		if attempts > 3*600 { // of two shards
			t.Errorf("%d attempts in ten minutes", attempts)
		}
		first.stop()
		second.stop()
		w.check(t, sales)
	})
}

// Only one of two processes reaches Kafka: it must get the shards.
func TestLeaderThatGetsNowhereYields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		cutOff := &process{world: w, life: stocktest.Process{World: &w.World, Cancel: func() {}}}
		cutOff.life.Kill()
		first := w.start(t, "cut off", func(o *relay.Options) { o.Publisher = cutOff })
		synctest.Wait()
		second := w.start(t, "well", nil)
		sales := load(w)
		w.awaitDrained(t)
		first.stop()
		second.stop()
		w.check(t, sales)
	})
}

func TestLostLeaseEndsTheLeadership(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		first := w.start(t, "first", nil)
		synctest.Wait()
		second := w.start(t, "second", nil)
		synctest.Wait()
		for shard := range 2 {
			w.Lock()
			l := w.holders[relay.LockKey(shard)]
			w.Unlock()
			l.end()
		}
		sales := load(w)
		w.awaitDrained(t)
		w.Await(t, "somebody leads", func() bool { return len(w.holders) == 2 })
		first.stop()
		second.stop()
		w.check(t, sales)
		if len(w.holders) != 0 {
			t.Error("a lease was kept")
		}
	})
}

func TestWhatIsNoEventIsPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		garbage := []byte("{\xff")
		huge := bytes.Repeat([]byte("x"), 3<<20)
		w.addRaw(0, garbage, []byte(`{"sale_id":"Not An ID"}`), nil)
		w.addRaw(0)
		w.addRaw(0, huge)
		w.add(0, "sale-0", 0, 1)
		p := w.start(t, "only", nil)
		w.awaitDrained(t)
		p.stop()
		w.check(t, map[string]int{"sale-0": 1})
		var got []string
		for _, m := range w.topic {
			got = append(got, fmt.Sprintf("%s:%d", m.Key, len(m.Value)))
		}
		if want := "outbox.0:2 outbox.0:23 outbox.0:0 outbox.0:65536 sale-0:26"; strings.Join(got, " ") != want {
			t.Errorf("published %v, want %s", got, want)
		}
	})
}

func TestOptionsAreChecked(t *testing.T) {
	if _, err := relay.New(relay.Options{}); err == nil {
		t.Error("no ports, no error")
	}
	p := &process{}
	if _, err := relay.New(relay.Options{Outbox: p, Publisher: p, Locker: p, Block: -1}); err == nil || !strings.Contains(err.Error(), "Block") {
		t.Errorf("negative block: %v", err)
	}
}
