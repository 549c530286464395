package redisstock

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"flashsale/internal/stock"
)

// A connection may drop after Redis ran the script: the batch is sent once more,
// by the counter or later by the buyers, in the company of others by then.
func TestABatchWhoseAnswerIsLostIsDeductedOnce(t *testing.T) {
	for name, counter := range counters {
		for _, lost := range []int{1, 2} { // answers in a row; the counter asks twice
			t.Run(name, func(t *testing.T) {
				f := onReal(t)
				sale := testSale(t, f)
				deduct := func(users ...string) ([]stock.Result, error) {
					var batch []stock.Deduction
					for _, user := range users {
						batch = append(batch, deductionOf(sale, user, 1))
					}
					return counter(f.Store).Deduct(t.Context(), 0, batch)
				}
				ran := 0
				f.hook.answer = func(script *script) error {
					if deducting(script) {
						if ran++; ran <= lost {
							return io.EOF
						}
					}
					return nil
				}
				_, err := deduct("ann", "bob", "cat")
				if want := map[int]error{1: nil, 2: stock.ErrOutcomeUnknown}[lost]; !errors.Is(err, want) {
					t.Errorf("error is %v, want %v", err, want)
				}
				wantLeft(t, f, sale, 7, 3)

				results, err := deduct("cat", "dan", "ann", "bob")
				if err != nil {
					t.Fatal(err)
				}
				for i, want := range []stock.Result{{Remaining: 7, Replayed: true}, {Remaining: 6}, {Remaining: 9, Replayed: true}, {Remaining: 8, Replayed: true}} {
					if results[i] != want {
						t.Errorf("result %d is %+v, want %+v", i, results[i], want)
					}
				}
				wantLeft(t, f, sale, 6, 4)
				if entries := f.client.XLen(t.Context(), f.deductKeys(sale.ID)[3]).Val(); entries != 2 {
					t.Errorf("%d outbox entries, want 2", entries)
				}
			})
		}
	}
}

// A batch of any size is one step: more than a command of it takes arguments.
func TestALargeBatchIsDecidedWhole(t *testing.T) {
	f := onReal(t)
	sale := testSale(t, f)
	if err := f.client.HSet(t.Context(), f.keys.Sale(sale.ID), "initial", 5000, "remaining", 5000).Err(); err != nil {
		t.Fatal(err)
	}
	var batch []stock.Deduction
	for n := range 2501 {
		batch = append(batch, deductionOf(sale, fmt.Sprint("user-", n), 1))
	}
	for round, replayed := range []bool{false, true} {
		results, err := f.Atomic().Deduct(t.Context(), 0, batch)
		if err != nil {
			t.Fatal(err)
		}
		for n, result := range results {
			if want := (stock.Result{Remaining: 4999 - int64(n), Replayed: replayed}); result != want {
				t.Fatalf("round %d, result %d is %+v, want %+v", round, n, result, want)
			}
		}
		wantLeft(t, f, sale, 2499, 2501)
	}
	for n := range 2501 {
		user := fmt.Sprint("user-", n)
		if p, err := f.PurchaseOf(t.Context(), sale.ID, user); err != nil || p.UserID != user || p.PurchaseID != batch[n].PurchaseID {
			t.Fatalf("%s has %+v (%v)", user, p, err)
		}
	}
}
