package redisstock

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"flashsale/internal/lock"
	"flashsale/internal/lock/redislock"
	"flashsale/internal/stock"
)

// exchanges sees what goes to Redis, and loses answers.
type exchanges struct {
	keys [][]string                // of the scripts that were sent, without their prefix
	fate func(keys []string) error // after a script has run; nil: it is answered
}

func (e *exchanges) DialHook(next redis.DialHook) redis.DialHook { return next }

func (e *exchanges) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (e *exchanges) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if !strings.HasPrefix(cmd.Name(), "eval") {
			return next(ctx, cmd)
		}
		var keys []string
		for _, key := range cmd.Args()[3 : 3+cmd.Args()[2].(int)] {
			parts := strings.Split(key.(string), ":")
			keys = append(keys, parts[2])
		}
		err := next(ctx, cmd)
		if err == nil && e.fate != nil {
			if err = e.fate(keys); err != nil {
				cmd.SetErr(err)
			}
		}
		if err == nil || !redis.HasErrorPrefix(err, "NOSCRIPT") {
			e.keys = append(e.keys, keys)
		}
		return err
	}
}

// isLast says whether a script both deducts and ends a lease.
func isLast(keys []string) bool {
	return slices.Contains(keys, "lock") && slices.Contains(keys, "outbox")
}

// leavingShop sells through a watchdog lock and the guarded counter.
func leavingShop(t *testing.T, f fixture) (*stock.Direct, stock.Sale, *exchanges) {
	t.Helper()
	locker, err := redislock.NewWatchdog(f.client, redislock.Options{
		Keys: func(key string) (string, string) { return f.keys.Lock(key), f.keys.Fence(key) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { locker.Close() })
	sale := stock.Sale{ID: "leaving", ItemID: "i", Title: "T", Stock: 10, PerUserLimit: 5, Variant: "watchdog", Fencing: true}
	if err := f.Preload(t.Context(), sale); err != nil {
		t.Fatal(err)
	}
	seller := stock.NewDirect(stock.DirectOptions{
		Sales: f.Store, Variants: map[string]stock.Variant{"watchdog": {Locker: locker, Counter: f.Guarded()}},
	})
	seen := &exchanges{}
	f.client.AddHook(seen)
	return seller, sale, seen
}

func buy(t *testing.T, seller stock.Seller, user string) (stock.Receipt, error) {
	return seller.Purchase(t.Context(), stock.Request{SaleID: "leaving", UserID: user, Quantity: 1, IdempotencyKey: "k"})
}

func wantFree(t *testing.T, f fixture) {
	t.Helper()
	if holder := f.client.Get(t.Context(), f.keys.Lock("leaving")).Val(); holder != "" {
		t.Errorf("the lock is still held by %q", holder)
	}
}

func TestTheWriteAndTheReleaseAreOneExchange(t *testing.T) {
	f := onReal(t)
	seller, sale, seen := leavingShop(t, f)
	if _, err := buy(t, seller, "first"); err != nil { // it looks for the terms, and Redis learns the scripts
		t.Fatal(err)
	}
	seen.keys = nil
	receipt, err := buy(t, seller, "ann")
	if err != nil || receipt.Remaining != 8 || receipt.Fence == 0 {
		t.Errorf("receipt is %+v (%v)", receipt, err)
	}
	if len(seen.keys) != 3 || !isLast(seen.keys[2]) {
		t.Errorf("exchanges on %q, want acquire, read, and write with release", seen.keys)
	}
	wantFree(t, f)
	wantLeft(t, f, sale, 8, 2)
}

// Its answer is lost: the purchase is looked up by its ID, and the lock is free.
func TestTheAnswerToTheLastExchangeIsLost(t *testing.T) {
	for name, test := range map[string]struct {
		lost int
		want error
	}{
		"once":   {1, nil},
		"always": {100, stock.ErrOutcomeUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			f := onReal(t)
			seller, sale, seen := leavingShop(t, f)
			lost := 0
			seen.fate = func(keys []string) error {
				if !isLast(keys) || lost == test.lost {
					return nil
				}
				lost++
				return io.EOF
			}
			receipt, err := buy(t, seller, "ann")
			if !errors.Is(err, test.want) || err == nil && receipt.Remaining != 9 {
				t.Errorf("receipt is %+v (%v), want %v", receipt, err, test.want)
			}
			wantFree(t, f)
			wantLeft(t, f, sale, 9, 1)
			seen.fate = nil
			if again, err := buy(t, seller, "ann"); err != nil || !again.Replayed || again.Remaining != 9 {
				t.Errorf("repeated: %+v (%v)", again, err)
			}
			wantLeft(t, f, sale, 9, 1)
		})
	}
}

// Between its read and its last exchange the lease ends, and another holder
// comes: nothing is deducted, and that one keeps its lock.
func TestALastExchangeThatComesTooLate(t *testing.T) {
	f := onReal(t)
	seller, sale, _ := leavingShop(t, f)
	inTheGap(f, func() {
		f.client.Set(t.Context(), f.keys.Lock(sale.ID), "another", time.Minute)
		if err := one(t, f.Guarded(), uint64(time.Now().Add(time.Hour).UnixMicro()), sale, "other", 3).Err; err != nil {
			t.Error(err)
		}
	})
	if _, err := buy(t, seller, "ann"); !errors.Is(err, stock.ErrStale) {
		t.Errorf("error is %v, want ErrStale", err)
	}
	wantLeft(t, f, sale, 7, 3)
	if holder := f.client.Get(t.Context(), f.keys.Lock(sale.ID)).Val(); holder != "another" {
		t.Errorf("the lock is %q's, want another's", holder)
	}
}

// A write that Redis refuses doesn't keep the lock.
func TestARefusedLastExchangeReleases(t *testing.T) {
	f := onReal(t)
	seller, sale, _ := leavingShop(t, f)
	inTheGap(f, func() { f.client.Set(t.Context(), f.deductKeys(sale.ID)[3], "no stream", 0) })
	if _, err := buy(t, seller, "ann"); !errors.Is(err, stock.ErrUnavailable) {
		t.Errorf("error is %v, want ErrUnavailable", err)
	}
	wantFree(t, f)
	wantLeft(t, f, sale, 10, 0)
}

// The lease is lost before: nothing is sent.
func TestNoLastExchangeOfALostLease(t *testing.T) {
	f := onReal(t)
	_, sale, seen := leavingShop(t, f)
	lease := lostLease{}
	batch := []stock.Deduction{deductionOf(sale, "ann", 1)}
	_, err := f.Guarded().(stock.Leaving).DeductAndLeave(t.Context(), lease, 7, batch)
	if !errors.Is(err, lock.ErrLost) || !errors.Is(err, stock.ErrUnavailable) {
		t.Errorf("error is %v, want ErrLost, nothing deducted", err)
	}
	if len(seen.keys) != 1 {
		t.Errorf("exchanges on %q, want the read alone", seen.keys)
	}
	wantLeft(t, f, sale, 10, 0)
}

type lostLease struct{ lock.Lease }

func (lostLease) ReleaseAfter(context.Context, lock.Step) (any, error) { return nil, lock.ErrLost }
