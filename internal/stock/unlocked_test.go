package stock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"flashsale/internal/stock"
)

// gatherUnlocked makes a crowd before a counter that needs no lock and takes a
// second to answer.
func gatherUnlocked(t *testing.T, options stock.CombiningOptions, change func(*crowd)) *crowd {
	return gather(t, options, func(c *crowd) {
		c.Variants["combining"] = stock.Variant{Counter: slow{counting{c}, time.Second}, Combine: true}
		if change != nil {
			change(c)
		}
	})
}

type slow struct {
	counting
	takes time.Duration
}

func (s slow) Deduct(ctx context.Context, fence uint64, batch []stock.Deduction) ([]stock.Result, error) {
	select {
	case <-time.After(s.takes):
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", stock.ErrOutcomeUnknown, ctx.Err())
	}
	return s.counting.Deduct(ctx, fence, batch)
}

func TestUnlockedBatches(t *testing.T) {
	combine(t, "nobody is waited for, and whoever has come meanwhile goes together", func(t *testing.T) {
		c := gatherUnlocked(t, stock.CombiningOptions{Batch: 3, Wait: time.Minute}, nil)
		for n := range 6 {
			c.buys(t.Context(), fmt.Sprint("user", n), 1)
		}
		c.buying.Wait()
		if got := c.batches; !slices.Equal(got, []int{1, 3, 2}) {
			t.Errorf("batches are %v", got)
		}
		for user, after := range map[string]time.Duration{"user01": time.Second, "user11": 2 * time.Second, "user51": 3 * time.Second} {
			got := c.want(user, nil)
			if got.after != after || got.receipt.Locked || got.receipt.LockWait != 0 || got.receipt.LockHold != 0 {
				t.Errorf("%s: after %v %+v", user, got.after, got.receipt)
			}
		}
		c.wantLeft(t, 4)
	})
	combine(t, "each gets its own verdict", func(t *testing.T) {
		c := gatherUnlocked(t, stock.CombiningOptions{}, nil)
		c.buys(t.Context(), "first", 2)
		c.buys(t.Context(), "ann", 2)
		c.buys(t.Context(), "ann", 1) // the same key for another quantity
		c.buys(t.Context(), "greedy", 3)
		for n := range 4 {
			c.buys(t.Context(), fmt.Sprint("user", n), 2)
		}
		c.buying.Wait()
		if got := c.want("ann2", nil).receipt; got.PurchaseID != stock.PurchaseID("sale", "ann", "key") || got.Remaining != 6 {
			t.Errorf("receipt is %+v", got)
		}
		c.want("ann1", stock.ErrKeyReused)
		c.want("greedy3", stock.ErrOverLimit)
		c.want("user22", nil)
		c.want("user32", stock.ErrSoldOut)
		c.wantLeft(t, 0)
	})
	combine(t, "work is done side by side", func(t *testing.T) {
		c := gatherUnlocked(t, stock.CombiningOptions{}, func(c *crowd) { c.sale.Work = stock.WorkRange{Min: time.Minute, Max: time.Minute} })
		c.buys(t.Context(), "ann", 1)
		c.buys(t.Context(), "bob", 1)
		c.buying.Wait()
		for _, user := range []string{"ann1", "bob1"} {
			if got := c.want(user, nil); got.after != time.Minute+time.Second {
				t.Errorf("%s: after %v", user, got.after)
			}
		}
	})
}

func TestUnlockedBatchAClientHangsUp(t *testing.T) {
	combine(t, "before it is sent", func(t *testing.T) {
		c := gatherUnlocked(t, stock.CombiningOptions{}, nil)
		c.buys(t.Context(), "first", 1)
		second, hangUp := context.WithCancel(t.Context())
		c.buys(second, "ann", 1)
		c.buys(t.Context(), "bob", 1)
		hangUp()
		c.buying.Wait()
		if got := c.want("ann1", stock.ErrUnavailable); got.after != 0 || !errors.Is(got.err, context.Canceled) {
			t.Errorf("answered after %v: %v", got.after, got.err)
		}
		c.want("first1", nil)
		c.want("bob1", nil)
		c.wantLeft(t, 8)
	})
	combine(t, "after it was sent: the batch goes on", func(t *testing.T) {
		c := gatherUnlocked(t, stock.CombiningOptions{}, nil)
		c.buys(t.Context(), "first", 1)
		second, hangUp := context.WithCancel(t.Context())
		c.buys(second, "ann", 1)
		c.buys(t.Context(), "bob", 1)
		time.Sleep(3 * time.Second / 2)
		hangUp()
		c.buying.Wait()
		if got := c.want("ann1", stock.ErrOutcomeUnknown); got.after != 3*time.Second/2 { // and indeed it is going to be sold
			t.Errorf("answered after %v", got.after)
		}
		c.want("bob1", nil)
		c.buys(t.Context(), "ann", 1) // it asks again, to know
		c.buying.Wait()
		if got := c.want("ann1", nil); !got.receipt.Replayed {
			t.Errorf("receipt is %+v", got.receipt)
		}
		c.wantLeft(t, 7)
	})
	combine(t, "all of them, and the next is served", func(t *testing.T) {
		c := gatherUnlocked(t, stock.CombiningOptions{}, nil)
		ctx, hangUp := context.WithCancel(t.Context())
		c.buys(ctx, "ann", 1)
		c.buys(ctx, "bob", 1)
		hangUp()
		c.buying.Wait()
		c.buys(t.Context(), "cat", 1)
		c.buying.Wait()
		c.want("cat1", nil)
		c.wantLeft(t, 8) // ann's had been sent
	})
}

func TestUnlockedBatchFails(t *testing.T) {
	combine(t, "its error is each one's", func(t *testing.T) {
		c := gatherUnlocked(t, stock.CombiningOptions{}, func(c *crowd) { c.memory.Hook = failDeduct(true, stock.ErrOutcomeUnknown) })
		users := []string{"ann", "bob", "cat"}
		for _, user := range users {
			c.buys(t.Context(), user, 1)
		}
		c.buying.Wait()
		for _, user := range users {
			c.want(user+"1", stock.ErrOutcomeUnknown)
		}
		c.memory.Hook = nil
		for _, user := range users {
			c.buys(t.Context(), user, 1)
		}
		c.buying.Wait()
		for _, user := range users {
			if got := c.want(user+"1", nil); !got.receipt.Replayed {
				t.Errorf("%s: %+v was not replayed", user, got.receipt)
			}
		}
		c.wantLeft(t, 7)
	})
	combine(t, "a counter that hangs keeps nobody for long who was not sent", func(t *testing.T) {
		c := gatherUnlocked(t, stock.CombiningOptions{Wait: 2 * time.Second}, func(c *crowd) {
			c.Variants["combining"] = stock.Variant{Counter: slow{counting{c}, time.Minute}, Combine: true}
		})
		c.buys(t.Context(), "first", 1)
		c.buys(t.Context(), "ann", 1)
		c.buying.Wait()
		if got := c.want("ann1", stock.ErrUnavailable); got.after != 2*time.Second || got.receipt.Locked || got.receipt.LockWait != 0 {
			t.Errorf("answered after %v: %+v", got.after, got.receipt)
		}
		c.want("first1", nil)
		c.wantLeft(t, 9)
	})
	combine(t, "each is kept for its own time", func(t *testing.T) {
		c := gatherUnlocked(t, stock.CombiningOptions{Wait: 2 * time.Second}, func(c *crowd) {
			c.Variants["combining"] = stock.Variant{Counter: slow{counting{c}, time.Minute}, Combine: true}
		})
		users := []string{"ann", "bob", "cat"}
		c.buys(t.Context(), "first", 1)
		for _, user := range users {
			c.buys(t.Context(), user, 1)
			time.Sleep(700 * time.Millisecond)
		}
		c.buying.Wait()
		for _, user := range users {
			if got := c.want(user+"1", stock.ErrUnavailable); got.after != 2*time.Second {
				t.Errorf("%s is answered after %v", user, got.after)
			}
		}
		c.wantLeft(t, 9)
	})
}
