package syncer_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"flashsale/internal/stock"
	"flashsale/internal/stock/stocktest"
	"flashsale/internal/syncer"
)

func id(sale string, n int) string { return stock.PurchaseID(sale, fmt.Sprintf("user-%d", n), "key") }

// event is the message of the n-th purchase of a sale.
func event(sale string, n int) []byte { return value(id(sale, n)) }

// value is the message of a purchase.
func value(purchaseID string) []byte {
	sale, _, _ := strings.Cut(purchaseID, ".")
	text, err := json.Marshal(stock.Deduction{
		PurchaseID: purchaseID, SaleID: sale, ItemID: sale, UserID: "bob", Quantity: 1,
		Variant: "watchdog", At: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
	}.Event(7))
	if err != nil {
		panic(err)
	}
	return text
}

// load puts two sales into two partitions, with two poisonous messages between.
func load(w *world) map[string][]string {
	want := map[string][]string{}
	for n := range 12 {
		for partition, sale := range []string{"sale-0", "sale-1"} {
			w.add(partition, event(sale, n))
			want[sale] = append(want[sale], id(sale, n))
		}
		switch n {
		case 3:
			w.add(0, []byte(`{"v":9}`))
		case 7:
			w.add(1, event("unknown", n))
		}
	}
	return want
}

// check looks at the promises: every purchase stored once, a sale's in order,
// nothing committed before its time, poison buried with its reason.
func (w *world) check(t *testing.T, want map[string][]string, dead ...string) {
	t.Helper()
	w.Lock()
	defer w.Unlock()
	for _, f := range w.faults {
		t.Error(f)
	}
	if !maps.EqualFunc(w.order, want, slices.Equal) {
		t.Errorf("settled in the order %v, want %v", w.order, want)
	}
	var reasons []string
	for _, d := range w.dead {
		reason, _, _ := strings.Cut(d, " ")
		reasons = append(reasons, reason)
	}
	slices.Sort(reasons)
	if reasons = slices.Compact(reasons); !slices.Equal(reasons, dead) {
		t.Errorf("buried for %v, want %v", reasons, dead)
	}
}

// One step fails, in every way and at every step. A syncer that died is
// replaced by another.
func TestEveryStepMayFail(t *testing.T) {
	stocktest.EveryStep(t, 15, func(t *testing.T, step int, fault stocktest.Fault) (fired bool) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			want := load(w)
			inject := stocktest.FailAt(step, fault, &fired)
			w.hook = func(string) stocktest.Fault { return inject() }
			first := w.start(t, nil)
			synctest.Wait()
			if w.isDead(first) {
				<-first.done
				first = w.start(t, nil)
			}
			w.awaitCommitted(t)
			first.stop()
			w.check(t, want, "unknown_sale", "unknown_version")
		})
		return fired
	})
}

func (w *world) isDead(p *process) bool {
	w.Lock()
	defer w.Unlock()
	return p.life.Dead()
}

// After a rebalance two syncers have the same messages.
func TestTwoSyncersWithTheSameMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		want := load(w)
		first := w.start(t, nil)
		second := w.start(t, func(o *syncer.Options) { o.Batch = 3 })
		w.awaitCommitted(t)
		synctest.Wait()
		first.stop()
		second.stop()
		w.check(t, want, "unknown_sale", "unknown_version")
	})
}

// An hour without a ledger: nothing is skipped, buried or committed, and the
// work is bounded.
func TestLedgerAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		want := load(w)
		back := time.Now().Add(time.Hour)
		attempts := 0
		w.hook = func(op string) stocktest.Fault {
			if op == "settle" && time.Now().Before(back) {
				attempts++
				return stocktest.Refused
			}
			return stocktest.Fine
		}
		p := w.start(t, nil)
		time.Sleep(time.Until(back) - time.Second) // fake
		synctest.Wait()
		if w.committed != [partitions]int64{} || len(w.dead) != 0 {
			t.Errorf("committed %v, buried %v", w.committed, w.dead)
		}
		w.awaitCommitted(t)
		if late := time.Since(back); late > 6*time.Second || attempts > 2*3600 {
			t.Errorf("went on %v after the ledger was back, %d attempts", late, attempts)
		}
		p.stop()
		w.check(t, want, "unknown_sale", "unknown_version")
	})
}

// One event that the ledger can't store must not take the rest with it.
func TestOneEventOfABatchIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		want := load(w)
		bad := id("sale-0", 2)
		w.refuse[bad] = true
		want["sale-0"] = slices.Delete(slices.Clone(want["sale-0"]), 2, 3)
		p := w.start(t, func(o *syncer.Options) { o.Batch = 100 })
		w.awaitCommitted(t)
		p.stop()
		w.check(t, want, "refused_by_ledger", "unknown_sale", "unknown_version")
	})
}

// The dead letter topic refuses for a while: the offset waits for it.
func TestBurialIsAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.add(0, []byte("poison"))
		back := time.Now().Add(time.Minute)
		w.hook = func(op string) stocktest.Fault {
			if op == "bury" && time.Now().Before(back) {
				return stocktest.Refused
			}
			return stocktest.Fine
		}
		p := w.start(t, nil)
		w.awaitCommitted(t)
		if time.Now().Before(back) || len(w.dead) != 1 {
			t.Errorf("committed before it was buried: %v", w.dead)
		}
		p.stop()
	})
}

func TestStopFinishesTheBatchInHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.add(0, event("sale-0", 0))
		settling := make(chan struct{})
		w.during = func() {
			close(settling)
			time.Sleep(3 * time.Second) // fake: a slow transaction
		}
		p := w.start(t, nil)
		<-settling
		began := time.Now()
		p.stop()
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("stopped after %v", took)
		}
		if w.committed[0] != 1 || !p.closed {
			t.Errorf("committed %d, source closed %v", w.committed[0], p.closed)
		}
	})
}

// Nor does it commit what it could not store or bury.
func TestStopDoesNotWaitForEver(t *testing.T) {
	for name, spoil := range map[string]func(*world){
		"idle":   func(*world) {},
		"broken": func(w *world) { w.hook = func(string) stocktest.Fault { return stocktest.Refused } },
		"slow":   func(w *world) { w.during = func() { time.Sleep(10 * time.Second) } }, // fake
		"settle": func(w *world) {
			w.hook = func(op string) stocktest.Fault {
				if op == "settle" {
					return stocktest.Refused
				}
				return stocktest.Fine
			}
		},
		"bury": func(w *world) {
			w.hook = func(op string) stocktest.Fault {
				if op == "bury" {
					return stocktest.Refused
				}
				return stocktest.Fine
			}
		},
		"commit": func(w *world) {
			w.hook = func(op string) stocktest.Fault {
				if op == "commit" {
					return stocktest.Refused
				}
				return stocktest.Fine
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				spoil(w)
				if name != "idle" {
					load(w)
				}
				p := w.start(t, nil)
				time.Sleep(time.Minute + time.Second) // fake
				began := time.Now()
				p.stop()
				if took := time.Since(began); took > 10*time.Second {
					t.Errorf("took %v", took)
				}
				for _, f := range w.faults {
					t.Error(f)
				}
			})
		})
	}
}

// The transaction hangs: it is given up after Timeout, and after Grace when the
// syncer is told to stop.
func TestHangingLedgerIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.add(0, event("sale-0", 0))
		p := w.start(t, func(o *syncer.Options) { o.Ledger = hanging{} })
		time.Sleep(35 * time.Second) // fake: the second attempt has 25 s to go
		began := time.Now()
		p.stop()
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("took %v", took)
		}
		if w.committed[0] != 0 {
			t.Error("committed what was never settled")
		}
	})
}

func TestBatchesAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		load(w)
		w.add(0, event("sale-0", 0)) // a redelivery
		var batches []syncer.Batch
		p := w.start(t, func(o *syncer.Options) {
			o.Batch = 100
			o.OnBatch = func(b syncer.Batch) { batches = append(batches, b) }
		})
		w.awaitCommitted(t)
		p.stop()
		if len(batches) != 1 || batches[0].Messages != 27 ||
			!maps.Equal(batches[0].Verdicts, map[stock.Verdict]int{stock.VerdictPersisted: 24, stock.VerdictKnown: 1, stock.VerdictUnknownSale: 1}) ||
			!maps.Equal(batches[0].Buried, map[string]int{"unknown_sale": 1, "unknown_version": 1}) {
			t.Errorf("batches %+v", batches)
		}
	})
}

func TestOptionsAreChecked(t *testing.T) {
	if _, err := syncer.New(syncer.Options{}); err == nil {
		t.Error("no ports, no error")
	}
	p := &process{}
	if _, err := syncer.New(syncer.Options{Source: p, Ledger: p, Grace: -1}); err == nil || !strings.Contains(err.Error(), "Grace") {
		t.Errorf("negative grace: %v", err)
	}
}
