package stock_test

import (
	"errors"
	"testing"
	"time"

	"flashsale/internal/stock"
)

// asks buys and says whether the counter was asked.
func (c *crowd) asks(user string, quantity int64, key string) (asked bool, err error) {
	before := len(c.batches)
	_, err = c.seller.Purchase(c.Context(), stock.Request{SaleID: "sale", UserID: user, Quantity: quantity, IdempotencyKey: key})
	return len(c.batches) > before, err
}

func (c *crowd) wantAsked(what string, asked bool, wantErr error) func(bool, error) {
	return func(got bool, err error) {
		c.Helper()
		if got != asked || !errors.Is(err, wantErr) {
			c.Errorf("%s: asked is %v, error %v; want %v, %v", what, got, err, asked, wantErr)
		}
	}
}

// soldOutSale is a sale of ten units, two a buyer, of which one is left; the
// counter answers after takes.
func soldOutSale(t *testing.T, takes time.Duration) *crowd {
	c := gatherUnlocked(t, stock.CombiningOptions{}, func(c *crowd) {
		c.Variants["combining"] = stock.Variant{Counter: slow{counting{c}, takes}, Combine: true}
	})
	for n, user := range []string{"ann", "bob", "cat", "dan", "eve"} {
		c.wantAsked(user, true, nil)(c.asks(user, map[bool]int64{true: 2, false: 1}[n < 4], "key-of-"+user))
	}
	c.wantAsked("fay", true, stock.ErrSoldOut)(c.asks("fay", 2, ""))
	return c
}

func TestSoldOutStandsForAMoment(t *testing.T) {
	combine(t, "from when it was asked for, to the instant", func(t *testing.T) {
		c := soldOutSale(t, 50*time.Millisecond)
		time.Sleep(149 * time.Millisecond) // 199 ms after it was sent
		c.wantAsked("before", false, stock.ErrSoldOut)(c.asks("gus", 2, ""))
		time.Sleep(time.Millisecond)
		c.wantAsked("after", true, stock.ErrSoldOut)(c.asks("gus", 2, ""))
	})
	combine(t, "an answer out of memory does not make it last longer", func(t *testing.T) {
		c := soldOutSale(t, 0)
		for range 4 {
			time.Sleep(50 * time.Millisecond)
			if _, err := c.asks("gus", 2, ""); !errors.Is(err, stock.ErrSoldOut) {
				t.Error(err)
			}
		}
		if got := len(c.batches); got != 7 {
			t.Errorf("the counter was asked %d times, want 7: five buyers, fay, and once after 200 ms", got)
		}
	})
	combine(t, "a sale that is closed here is not sold out any more", func(t *testing.T) {
		c := soldOutSale(t, 0)
		c.wantAsked("before", false, stock.ErrSoldOut)(c.asks("gus", 2, ""))
		c.seller.Closed("another")
		c.wantAsked("another's end", false, stock.ErrSoldOut)(c.asks("gus", 2, ""))
		c.seller.Closed("sale")
		c.wantAsked("after", true, stock.ErrSoldOut)(c.asks("gus", 2, ""))
	})
	combine(t, "fewer units may still be had", func(t *testing.T) {
		c := soldOutSale(t, 0)
		c.wantAsked("one unit", true, nil)(c.asks("gus", 1, ""))
		c.wantAsked("the next", true, stock.ErrSoldOut)(c.asks("hal", 1, ""))
		c.wantAsked("and one more", false, stock.ErrSoldOut)(c.asks("ivy", 1, ""))
		c.wantAsked("two", false, stock.ErrSoldOut)(c.asks("ivy", 2, ""))
	})
	combine(t, "a repetition gets its answer", func(t *testing.T) {
		c := soldOutSale(t, 0)
		c.wantAsked("the same", true, nil)(c.asks("ann", 2, "key-of-ann"))
		c.wantAsked("another quantity", true, stock.ErrKeyReused)(c.asks("ann", 1, "key-of-ann"))
		c.wantAsked("a key that is new", true, stock.ErrSoldOut)(c.asks("gus", 2, "key-of-gus"))
	})
	combine(t, "who has bought is told so", func(t *testing.T) {
		c := soldOutSale(t, 0)
		c.wantAsked("ann", true, stock.ErrAlreadyBought)(c.asks("ann", 2, ""))
	})
	combine(t, "above the limit", func(t *testing.T) {
		c := soldOutSale(t, 0)
		c.wantAsked("greedy", true, stock.ErrOverLimit)(c.asks("greedy", 3, ""))
	})
	combine(t, "under a lock too", func(t *testing.T) {
		c := gather(t, stock.CombiningOptions{}, nil)
		for _, user := range []string{"ann", "bob", "cat", "dan", "eve"} {
			c.wantAsked(user, true, nil)(c.asks(user, 2, ""))
		}
		c.locker.wait = 0 // neither the lock nor its release takes time
		c.wantAsked("fay", true, stock.ErrSoldOut)(c.asks("fay", 2, ""))
		locks := c.locks
		c.wantAsked("gus", false, stock.ErrSoldOut)(c.asks("gus", 2, ""))
		if c.locks != locks {
			t.Error("the lock was acquired")
		}
	})
}
