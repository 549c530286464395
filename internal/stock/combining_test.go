package stock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"flashsale/internal/lock"
	"flashsale/internal/stock"
	"flashsale/internal/stock/stocktest"
)

// crowd is buyers before a combining Seller, whose lock takes a second to get
// and is asked by one at a time.
type crowd struct {
	*testing.T
	*shop
	seller  *stock.Combining
	mu      sync.Mutex
	buying  sync.WaitGroup
	answers map[string]answer
	locks   int           // acquisitions, of which some may have been refused
	batches []int         // how many deductions each came with
	slow    time.Duration // what a deduction takes
}

type answer struct {
	receipt stock.Receipt
	err     error
	after   time.Duration
}

// gather makes a crowd; change may set up the shop before it opens.
func gather(t *testing.T, options stock.CombiningOptions, change func(*crowd)) *crowd {
	c := &crowd{T: t, shop: newShop(), answers: make(map[string]answer)}
	c.locker.wait = time.Second
	c.sale.Variant = "combining"
	c.Variants["combining"] = stock.Variant{Locker: counting{c}, Counter: counting{c}, Combine: true}
	if change != nil {
		change(c)
	}
	c.seller = stock.NewCombining(c.open(t), options)
	return c
}

// counting counts what gets to the lock and to the counter.
type counting struct{ *crowd }

func (c counting) Acquire(ctx context.Context, key string) (lock.Lease, error) {
	var locker fakeLock
	c.setLock(func(l *fakeLock) { c.locks++; locker = *l })
	select {
	case <-time.After(locker.wait):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	c.setLock(func(l *fakeLock) { locker.refuse = l.refuse })
	if locker.refuse != nil {
		return nil, locker.refuse
	}
	return fakeLease{&locker, key}, nil
}

// setLock changes the lock that is asked from now on.
func (c *crowd) setLock(change func(*fakeLock)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(c.locker)
}

func (c counting) Preload(ctx context.Context, s stock.Sale) error { return c.memory.Preload(ctx, s) }
func (c counting) Snapshot(ctx context.Context, id string) (stock.Snapshot, error) {
	return c.memory.Snapshot(ctx, id)
}

func (c counting) Deduct(ctx context.Context, fence uint64, batch []stock.Deduction) ([]stock.Result, error) {
	c.mu.Lock()
	c.batches = append(c.batches, len(batch))
	c.mu.Unlock()
	time.Sleep(c.slow)
	return c.memory.Deduct(ctx, fence, batch)
}

func (c *crowd) buys(ctx context.Context, user string, quantity int64) {
	start := time.Now()
	c.buying.Go(func() {
		receipt, err := c.seller.Purchase(ctx, stock.Request{SaleID: "sale", UserID: user, Quantity: quantity, IdempotencyKey: "key"})
		c.mu.Lock()
		defer c.mu.Unlock()
		c.answers[user+fmt.Sprint(quantity)] = answer{receipt, err, time.Since(start)}
	})
	synctest.Wait() // in line, in this order
}

func (c *crowd) want(user string, err error) answer {
	c.Helper()
	got, answered := c.answers[user]
	if !answered || !errors.Is(got.err, err) {
		c.Errorf("%s: error is %v, want %v", user, got.err, err)
	}
	for _, other := range []error{stock.ErrBusy, stock.ErrStale, stock.ErrUnavailable, stock.ErrOutcomeUnknown} {
		if other != err && errors.Is(got.err, other) {
			c.Errorf("%s: error is %v, which is %v too", user, got.err, other)
		}
	}
	return got
}

// combine runs a test in a bubble, which also wants every goroutine to end.
func combine(t *testing.T, name string, test func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}

func TestCombining(t *testing.T) {
	combine(t, "one acquisition serves all, each by itself", func(t *testing.T) {
		c := gather(t, stock.CombiningOptions{}, nil)
		c.buys(t.Context(), "ann", 2)
		c.buys(t.Context(), "ann", 1) // the same key for another quantity
		c.buys(t.Context(), "bob", 2)
		c.buys(t.Context(), "greedy", 3)
		for n := range 5 {
			c.buys(t.Context(), fmt.Sprint("user", n), 2)
		}
		c.buying.Wait()
		got := c.want("ann2", nil)
		want := stock.Receipt{
			PurchaseID: stock.PurchaseID("sale", "ann", "key"), SaleID: "sale", Quantity: 2, Remaining: 8, Fence: 42, Variant: "combining",
			Locked: true, LockWait: time.Second, LockHold: time.Second, // the release takes one
		}
		if got.receipt != want {
			t.Errorf("receipt is %+v, want %+v", got.receipt, want)
		}
		c.want("ann1", stock.ErrKeyReused)
		c.want("greedy3", stock.ErrOverLimit)
		c.want("user22", nil)
		c.want("user32", stock.ErrSoldOut)
		if c.locks != 1 || len(c.batches) != 1 {
			t.Errorf("%d acquisitions, batches %v, want one of each", c.locks, c.batches)
		}
		c.wantLeft(t, 0)
	})
	combine(t, "a batch is bounded", func(t *testing.T) {
		c := gather(t, stock.CombiningOptions{Batch: 2, Wait: time.Minute}, nil)
		for n := range 5 {
			c.buys(t.Context(), fmt.Sprint("user", n), 1)
		}
		c.buying.Wait()
		if got := c.batches; !slices.Equal(got, []int{2, 2, 1}) || c.locks != 3 {
			t.Errorf("batches are %v under %d acquisitions", got, c.locks)
		}
		c.wantLeft(t, 5)
	})
	combine(t, "other variants go their own way", func(t *testing.T) {
		c := gather(t, stock.CombiningOptions{}, func(c *crowd) { c.sale.Variant = "locked" })
		c.buys(t.Context(), "ann", 1)
		c.buying.Wait()
		c.want("ann1", nil)
		if c.locks != 0 {
			t.Error("it was combined")
		}
	})
	combine(t, "fencing off", func(t *testing.T) {
		c := gather(t, stock.CombiningOptions{}, func(c *crowd) { c.sale.Fencing = false })
		c.buys(t.Context(), "ann", 1)
		c.buying.Wait()
		if got := c.want("ann1", nil); got.receipt.Fence != 0 {
			t.Errorf("fence is %d", got.receipt.Fence)
		}
	})
}

func TestCombiningAClientHangsUp(t *testing.T) {
	combine(t, "while the lock is asked for", func(t *testing.T) {
		c := gather(t, stock.CombiningOptions{}, nil)
		first, hangUp := context.WithCancel(t.Context())
		c.buys(first, "ann", 1)
		c.buys(t.Context(), "bob", 1)
		hangUp()
		c.buying.Wait()
		if got := c.want("ann1", stock.ErrUnavailable); got.after != 0 || !errors.Is(got.err, context.Canceled) {
			t.Errorf("answered after %v: %v", got.after, got.err)
		}
		c.want("bob1", nil)
		c.wantLeft(t, 9)
	})
	combine(t, "all of them: nobody asks for the lock any more", func(t *testing.T) {
		c := gather(t, stock.CombiningOptions{Wait: time.Hour}, func(c *crowd) { c.locker.wait = 24 * time.Hour })
		start := time.Now()
		ctx, hangUp := context.WithCancel(t.Context())
		c.buys(ctx, "ann", 1)
		c.buys(ctx, "bob", 1)
		hangUp()
		c.buying.Wait()
		synctest.Wait()
		if len(c.batches) > 0 || time.Since(start) > time.Second {
			t.Errorf("batches %v after %v", c.batches, time.Since(start))
		}
		c.setLock(func(l *fakeLock) { l.wait = time.Second })
		c.buys(t.Context(), "cat", 1) // the line is taken up again
		c.buying.Wait()
		c.want("cat1", nil)
	})
	combine(t, "during the work: nothing is sent", func(t *testing.T) {
		c := gather(t, stock.CombiningOptions{}, func(c *crowd) { c.sale.Work = stock.WorkRange{Min: time.Second / 4, Max: time.Second / 4} })
		first, hangUp := context.WithCancel(t.Context())
		c.buys(first, "ann", 1)
		c.buys(t.Context(), "bob", 1)
		time.Sleep(time.Second + time.Second/8)
		hangUp()
		c.buying.Wait()
		c.want("ann1", stock.ErrUnavailable)
		c.want("bob1", nil)
		c.wantLeft(t, 9)
	})
	combine(t, "after the deduction was sent", func(t *testing.T) {
		sent, answered := make(chan struct{}), make(chan struct{})
		c := gather(t, stock.CombiningOptions{}, func(c *crowd) {
			c.Variants["combining"] = stock.Variant{Locker: counting{c}, Combine: true, Counter: hooked{c.memory, func(context.Context) (bool, error) {
				close(sent)
				<-answered
				return true, nil
			}}}
		})
		first, hangUp := context.WithCancel(t.Context())
		c.buys(first, "ann", 1)
		c.buys(t.Context(), "bob", 1)
		<-sent
		hangUp()
		synctest.Wait()
		c.want("ann1", stock.ErrOutcomeUnknown) // and indeed it is sold
		close(answered)
		c.buying.Wait()
		c.want("bob1", nil)
		c.wantLeft(t, 8)
	})
}

func TestCombiningTheBatchFails(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*crowd)
		want   error
		left   int64
	}{
		"contention":    {func(c *crowd) { c.locker.refuse = lock.ErrNotAcquired }, stock.ErrBusy, 10},
		"no lock":       {func(c *crowd) { c.locker.refuse = lock.ErrUnavailable }, stock.ErrUnavailable, 10},
		"stale":         {func(c *crowd) { c.memory.Hook = failDeduct(false, stock.ErrStale) }, stock.ErrStale, 10},
		"store away":    {func(c *crowd) { c.memory.Hook = failDeduct(false, stock.ErrUnavailable) }, stock.ErrUnavailable, 10},
		"answer lost":   {func(c *crowd) { c.memory.Hook = failDeduct(true, stock.ErrOutcomeUnknown) }, stock.ErrOutcomeUnknown, 7},
		"release fails": {func(c *crowd) { c.locker.release = lock.ErrLost }, nil, 7},
	} {
		combine(t, name, func(t *testing.T) {
			c := gather(t, stock.CombiningOptions{Wait: time.Minute}, test.change)
			users := []string{"ann", "bob", "cat"}
			for _, user := range users {
				c.buys(t.Context(), user, 1)
			}
			c.buying.Wait()
			for _, user := range users {
				c.want(user+"1", test.want)
			}
			if most := 2; c.locks > most { // the first was asked for before the others came
				t.Errorf("%d acquisitions, want %d at most", c.locks, most)
			}
			c.wantLeft(t, test.left)
		})
	}
	combine(t, "lock lost during the work", func(t *testing.T) {
		lost := make(chan struct{})
		c := gather(t, stock.CombiningOptions{Wait: time.Minute}, func(c *crowd) {
			c.sale.Work = stock.WorkRange{Min: time.Second / 4, Max: time.Second / 4}
			c.locker.lost = lost
		})
		for _, user := range []string{"ann", "bob", "cat"} {
			c.buys(t.Context(), user, 1)
		}
		time.Sleep(time.Second + time.Second*3/8) // at bob's
		c.setLock(func(l *fakeLock) { l.lost = nil })
		close(lost)
		c.buying.Wait()
		for _, user := range []string{"ann1", "bob1"} {
			if err := c.answers[user].err; !errors.Is(err, stock.ErrStale) || errors.Is(err, stock.ErrOutcomeUnknown) {
				t.Errorf("%s: error is %v, want ErrStale", user, err)
			}
		}
		c.want("cat1", nil) // under the next lock
		c.wantLeft(t, 9)
	})
}

func failDeduct(apply bool, err error) func(string) (bool, error) {
	return func(op string) (bool, error) {
		if op == stocktest.OpDeduct {
			return apply, err
		}
		return true, nil
	}
}

// Who comes while the lock is being refused to others has not waited yet.
func TestCombiningARefusalIsForThoseWhoAsked(t *testing.T) {
	combine(t, "", func(t *testing.T) {
		c := gather(t, stock.CombiningOptions{}, func(c *crowd) { c.locker.refuse = lock.ErrNotAcquired })
		c.buys(t.Context(), "ann", 1)
		time.Sleep(time.Second / 2)
		c.buys(t.Context(), "bob", 1)
		time.Sleep(time.Second * 3 / 4) // ann has been refused, bob is being asked for
		c.setLock(func(l *fakeLock) { l.refuse = nil })
		c.buying.Wait()
		c.want("ann1", stock.ErrBusy)
		c.want("bob1", nil)
	})
}

// While a batch is being deducted, who comes next is in line for the lock
// already: it can be handed over in the exchange that ends the lease before.
func TestCombiningAsksAhead(t *testing.T) {
	combine(t, "", func(t *testing.T) {
		c := gather(t, stock.CombiningOptions{Wait: time.Minute}, func(c *crowd) { c.slow = 10 * time.Second })
		c.buys(t.Context(), "ann", 1)
		time.Sleep(2 * time.Second) // granted, and sent
		c.buys(t.Context(), "bob", 1)
		c.mu.Lock()
		asked, answered := c.locks, len(c.answers)
		c.mu.Unlock()
		if asked != 2 || answered != 0 {
			t.Errorf("asked for the lock %d times before anybody was answered (%d were), want 2", asked, answered)
		}
		c.buying.Wait()
		c.want("ann1", nil)
		c.want("bob1", nil)
		c.wantLeft(t, 8)
	})
}

func TestCombiningWaitIsBounded(t *testing.T) {
	combine(t, "", func(t *testing.T) {
		c := gather(t, stock.CombiningOptions{Wait: 2 * time.Second}, func(c *crowd) { c.locker.wait = time.Minute })
		c.buys(t.Context(), "ann", 1)
		time.Sleep(time.Second)
		c.buys(t.Context(), "bob", 1)
		c.buying.Wait()
		for _, user := range []string{"ann1", "bob1"} {
			if got := c.want(user, stock.ErrBusy); got.after != 2*time.Second || got.receipt.LockWait != got.after || !got.receipt.Locked {
				t.Errorf("%s: answered after %v: %+v", user, got.after, got.receipt)
			}
		}
	})
}

// Each purchase's work is done, one after the other; a batch ends when that has
// taken long enough, and the others wait for the next.
func TestCombiningWork(t *testing.T) {
	combine(t, "", func(t *testing.T) {
		c := gather(t, stock.CombiningOptions{Wait: time.Minute}, func(c *crowd) {
			c.locker.wait = 0
			c.sale.Work = stock.WorkRange{Min: 400 * time.Millisecond, Max: 400 * time.Millisecond}
		})
		for n := range 4 {
			c.buys(t.Context(), fmt.Sprint("user", n), 1)
		}
		c.buying.Wait()
		if got := c.batches; !slices.Equal(got, []int{3, 1}) {
			t.Errorf("batches are %v, want 3 and 1", got)
		}
		if got := c.want("user31", nil); got.after != 1600*time.Millisecond {
			t.Errorf("four times 400 ms of work took %v", got.after)
		}
	})
}
