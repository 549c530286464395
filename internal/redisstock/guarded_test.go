package redisstock

import (
	"context"
	"errors"
	"testing"

	"flashsale/internal/stock"
)

var errLost = errors.New("lock lost")

func contextWithCause(t *testing.T) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(t.Context())
	t.Cleanup(func() { cancel(nil) })
	return ctx, cancel
}

// inTheGap runs fn once, between a guarded read and its write.
func inTheGap(f fixture, fn func()) {
	f.hook.after = func(script *script) {
		if script == guardedReadScript {
			f.hook.after = nil
			fn()
		}
	}
}

// TestWithoutALockAnUpdateIsLost shows what the variant none is there to show.
func TestWithoutALockAnUpdateIsLost(t *testing.T) {
	f := onReal(t)
	sale := testSale(t, f)
	inTheGap(f, func() { one(t, f.Guarded(), 0, sale, "bob", 3) })
	if result := one(t, f.Guarded(), 0, sale, "ann", 1); result.Err != nil || result.Remaining != 9 {
		t.Errorf("result is %+v", result)
	}
	wantLeft(t, f, sale, 9, 4) // 4 units sold, 1 gone from the counter
}

func TestWithoutALockTheLastUnitIsSoldTwice(t *testing.T) {
	f := onReal(t)
	sale := testSale(t, f)
	one(t, f.Guarded(), 0, sale, "early", 9)
	inTheGap(f, func() {
		if err := one(t, f.Guarded(), 0, sale, "bob", 1).Err; err != nil {
			t.Error(err)
		}
	})
	if err := one(t, f.Guarded(), 0, sale, "ann", 1).Err; err != nil {
		t.Error(err)
	}
	wantLeft(t, f, sale, 0, 11)
}

// TestAnOutlivedHolderIsRefused: its lease ends between its read and its write,
// and another holder comes.
func TestAnOutlivedHolderIsRefused(t *testing.T) {
	for _, test := range []struct {
		name string
		next func(t *testing.T, f fixture, sale stock.Sale)
		left int64
	}{
		{"after the next one's read", func(t *testing.T, f fixture, sale stock.Sale) {
			if _, err := (guardedCounter{f.Store}).read(t.Context(), f.call, sale.ID, 8, []stock.Deduction{deductionOf(sale, "new", 3)}); err != nil {
				t.Error(err)
			}
		}, 10},
		{"after the next one's write", func(t *testing.T, f fixture, sale stock.Sale) {
			if err := one(t, f.Guarded(), 8, sale, "new", 3).Err; err != nil {
				t.Error(err)
			}
		}, 7},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := onReal(t)
			sale := testSale(t, f)
			inTheGap(f, func() { test.next(t, f, sale) })
			if err := one(t, f.Guarded(), 7, sale, "old", 1).Err; !errors.Is(err, stock.ErrStale) {
				t.Errorf("error is %v, want ErrStale", err)
			}
			wantLeft(t, f, sale, test.left, 10-test.left)
			// And it stays refused: it can't read either.
			if err := one(t, f.Guarded(), 7, sale, "old", 1).Err; !errors.Is(err, stock.ErrStale) {
				t.Errorf("error is %v, want ErrStale", err)
			}
		})
	}
}

// TestAFenceThatRedisForgotIsRefused: a replica took over that had not heard of
// the read. What was read may not be what stands there.
func TestAFenceThatRedisForgotIsRefused(t *testing.T) {
	f := onReal(t)
	sale := testSale(t, f)
	inTheGap(f, func() { f.client.HSet(t.Context(), f.keys.Sale(sale.ID), "last_fence", 6) })
	if err := one(t, f.Guarded(), 7, sale, "ann", 1).Err; !errors.Is(err, stock.ErrStale) {
		t.Errorf("error is %v, want ErrStale", err)
	}
	wantLeft(t, f, sale, 10, 0)
}

// TestWithoutFencingAnOutlivedHolderDestroysAnUpdate is the same with fence 0.
func TestWithoutFencingAnOutlivedHolderDestroysAnUpdate(t *testing.T) {
	f := onReal(t)
	sale := testSale(t, f)
	inTheGap(f, func() { one(t, f.Guarded(), 0, sale, "new", 3) })
	if err := one(t, f.Guarded(), 0, sale, "old", 1).Err; err != nil {
		t.Errorf("error is %v", err)
	}
	wantLeft(t, f, sale, 9, 4)
}

// TestARepetitionIsAnsweredWhoeverHoldsTheLock: the purchase is written while
// its repetition is in the gap, and then a third comes along.
func TestARepetitionIsAnsweredWhoeverHoldsTheLock(t *testing.T) {
	f := onReal(t)
	sale := testSale(t, f)
	inTheGap(f, func() {
		one(t, f.Guarded(), 7, sale, "ann", 2)
		one(t, f.Guarded(), 8, sale, "bob", 1)
	})
	result := one(t, f.Guarded(), 7, sale, "ann", 2)
	if want := (stock.Result{Remaining: 8, Fence: 7, Replayed: true}); result != want {
		t.Errorf("result is %+v, want %+v", result, want)
	}
	inTheGap(f, func() { one(t, f.Guarded(), 9, sale, "cat", 2) })
	if err := one(t, f.Guarded(), 9, sale, "cat", 1).Err; !errors.Is(err, stock.ErrKeyReused) {
		t.Errorf("other quantity: error is %v, want ErrKeyReused", err)
	}
	wantLeft(t, f, sale, 5, 5)
}

// TestNothingIsSoldAfterClose: the sale is closed between read and write.
func TestNothingIsSoldAfterClose(t *testing.T) {
	f := onReal(t)
	sale := testSale(t, f)
	inTheGap(f, func() {
		if err := f.Close(t.Context(), sale.ID); err != nil {
			t.Error(err)
		}
	})
	if err := one(t, f.Guarded(), 0, sale, "ann", 1).Err; !errors.Is(err, stock.ErrSaleClosed) {
		t.Errorf("error is %v, want ErrSaleClosed", err)
	}
	wantLeft(t, f, sale, 10, 0)
}

// TestALostAnswerIsRepeatedUnderANewHolder: the write took place, its answer
// was lost, and by the time of the second attempt another holds the lock.
func TestALostAnswerIsRepeatedUnderANewHolder(t *testing.T) {
	f := onReal(t)
	sale := testSale(t, f)
	f.hook.lose.Store(true)
	f.hook.after = func(script *script) {
		if script == guardedWriteScript {
			f.hook.lose.Store(false)
			f.hook.after = nil
			one(t, f.Guarded(), 8, sale, "bob", 1)
		}
	}
	result := one(t, f.Guarded(), 7, sale, "ann", 2)
	if want := (stock.Result{Remaining: 8, Fence: 7, Replayed: true}); result != want {
		t.Errorf("result is %+v, want %+v", result, want)
	}
	wantLeft(t, f, sale, 7, 3)
}
