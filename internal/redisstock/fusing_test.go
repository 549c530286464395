package redisstock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"flashsale/internal/lock"
	"flashsale/internal/lock/redislock"
	"flashsale/internal/stock"
)

// exchanges sees what goes to Redis, and loses answers.
type exchanges struct {
	mu   sync.Mutex
	keys [][]string                // of the scripts that were sent
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
		keys := scriptKeys(cmd)
		err := next(ctx, cmd)
		if redis.HasErrorPrefix(err, "NOSCRIPT") {
			return err
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		if err == nil && e.fate != nil {
			if err = e.fate(keys); err != nil {
				cmd.SetErr(err)
			}
		}
		e.keys = append(e.keys, keys)
		return err
	}
}

// losing is a fate that loses the first n answers to what is picked.
func losing(n int, picked func(keys []string) bool) func(keys []string) error {
	return func(keys []string) error {
		if !picked(keys) || n == 0 {
			return nil
		}
		n--
		return io.EOF
	}
}

// isFirst and isLast say what a script does beside granting or ending a lease.
func isFirst(keys []string) bool { reads, _ := parts(keys); return reads }
func isLast(keys []string) bool  { _, writes := parts(keys); return writes }

// fusingShop sells through a watchdog lock and the guarded counter.
func fusingShop(t *testing.T, f fixture) (*stock.Direct, stock.Sale, *exchanges) {
	t.Helper()
	locker, err := redislock.NewWatchdog(f.client, redislock.Options{
		Keys: func(key string) (string, string) { return f.keys.Lock(key), f.keys.Fence(key) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { locker.Close() })
	sale := stock.Sale{ID: "fusing", ItemID: "i", Title: "T", Stock: 10, PerUserLimit: 5, Variant: "watchdog", Fencing: true}
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
	return seller.Purchase(t.Context(), stock.Request{SaleID: "fusing", UserID: user, Quantity: 1, IdempotencyKey: "k"})
}

func wantFree(t *testing.T, f fixture) {
	t.Helper()
	if holder := f.client.Get(t.Context(), f.keys.Lock("fusing")).Val(); holder != "" {
		t.Errorf("the lock is still held by %q", holder)
	}
}

func TestAPurchaseIsTwoExchanges(t *testing.T) {
	f := onReal(t)
	seller, sale, seen := fusingShop(t, f)
	if _, err := buy(t, seller, "first"); err != nil { // it looks for the terms, and Redis learns the scripts
		t.Fatal(err)
	}
	seen.keys = nil
	receipt, err := buy(t, seller, "ann")
	if err != nil || receipt.Remaining != 8 || receipt.Fence == 0 {
		t.Errorf("receipt is %+v (%v)", receipt, err)
	}
	if len(seen.keys) != 2 || !isFirst(seen.keys[0]) || isLast(seen.keys[0]) || !isLast(seen.keys[1]) {
		t.Errorf("exchanges on %q, want acquisition with read, and write with release", seen.keys)
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
			seller, sale, seen := fusingShop(t, f)
			seen.fate = losing(test.lost, isLast)
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

// Somebody waits in this process: its read comes with what is the last exchange
// of the one before, so that each purchase is one.
func TestTheReadComesWithTheHandover(t *testing.T) {
	f := onReal(t)
	seller, sale, seen := fusingShop(t, f)
	const buyers = 8
	var all sync.WaitGroup
	for i := range buyers {
		all.Go(func() {
			if _, err := buy(t, seller, fmt.Sprint("user-", i)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	wantFree(t, f)
	wantLeft(t, f, sale, 10-buyers, buyers)
	both := 0
	for _, keys := range seen.keys {
		if isFirst(keys) && isLast(keys) {
			both++
		}
	}
	if both == 0 {
		t.Errorf("exchanges on %q: in none did one write and the next one read", seen.keys)
	}
}

// The answer to the grant is lost: the read comes with the next answer, or the
// purchase is refused and nothing done.
func TestTheAnswerToTheFirstExchangeIsLost(t *testing.T) {
	for name, test := range map[string]struct {
		lost int
		want error
		left int64
	}{
		"once":   {1, nil, 9},
		"always": {100, stock.ErrUnavailable, 10},
	} {
		t.Run(name, func(t *testing.T) {
			f := onReal(t)
			seller, sale, seen := fusingShop(t, f)
			seen.fate = losing(test.lost, isFirst)
			receipt, err := buy(t, seller, "ann")
			if !errors.Is(err, test.want) || err == nil && receipt.Remaining != 9 {
				t.Errorf("receipt is %+v (%v), want %v", receipt, err, test.want)
			}
			wantFree(t, f)
			wantLeft(t, f, sale, test.left, 10-test.left)
		})
	}
}

// The read fails where it comes with the lock: the lock is granted, and the read
// is done again, to say what is wrong.
func TestTheFirstReadFails(t *testing.T) {
	f := onReal(t)
	seller, sale, seen := fusingShop(t, f)
	if _, err := buy(t, seller, "first"); err != nil { // the terms are known from now on
		t.Fatal(err)
	}
	f.client.Del(t.Context(), f.keys.Buyers(sale.ID))
	f.client.Set(t.Context(), f.keys.Buyers(sale.ID), "no hash", 0)
	seen.keys = nil
	if _, err := buy(t, seller, "ann"); !errors.Is(err, stock.ErrUnavailable) || !strings.Contains(err.Error(), "WRONGTYPE") {
		t.Errorf("error is %v, want ErrUnavailable and WRONGTYPE", err)
	}
	if len(seen.keys) != 3 || !isFirst(seen.keys[0]) || isFirst(seen.keys[1]) {
		t.Errorf("exchanges on %q, want acquisition with read, read, release", seen.keys)
	}
	wantFree(t, f)
}

// What the first read said stands only as long as the fence: a sale that ends
// between it and the write sells nothing.
func TestTheSaleEndsAfterTheFirstRead(t *testing.T) {
	f := onReal(t)
	seller, sale, seen := fusingShop(t, f)
	seen.fate = func(keys []string) error {
		if !isFirst(keys) {
			return nil
		}
		return f.client.HSet(t.Context(), f.keys.Sale(sale.ID), "state", "closed").Err()
	}
	if _, err := buy(t, seller, "ann"); !errors.Is(err, stock.ErrSaleClosed) {
		t.Errorf("error is %v, want ErrSaleClosed", err)
	}
	wantFree(t, f)
	wantLeft(t, f, sale, 10, 0)
}

// Without a fence the counter can't read with the lock, and with work inside the
// lock what it read would be old.
func TestTheReadComesAlone(t *testing.T) {
	for name, change := range map[string]func(*stock.Sale){
		"no fencing": func(s *stock.Sale) { s.Fencing = false },
		"work":       func(s *stock.Sale) { s.Work = stock.WorkRange{Min: time.Microsecond, Max: time.Microsecond} },
	} {
		t.Run(name, func(t *testing.T) {
			f := onReal(t)
			seller, sale, seen := fusingShop(t, f)
			sale.ID = "alone"
			change(&sale)
			if err := f.Preload(t.Context(), sale); err != nil {
				t.Fatal(err)
			}
			for _, user := range []string{"first", "ann"} { // the first looks for the terms
				seen.keys = nil
				if _, err := seller.Purchase(t.Context(), stock.Request{SaleID: sale.ID, UserID: user, Quantity: 1}); err != nil {
					t.Error(err)
				}
			}
			if len(seen.keys) != 3 || isFirst(seen.keys[0]) || !isLast(seen.keys[2]) {
				t.Errorf("exchanges on %q, want acquisition, read, write with release", seen.keys)
			}
		})
	}
}

// Between its read and its last exchange the lease ends, and another holder
// comes: nothing is deducted, and that one keeps its lock.
func TestALastExchangeThatComesTooLate(t *testing.T) {
	f := onReal(t)
	seller, sale, _ := fusingShop(t, f)
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
	seller, sale, _ := fusingShop(t, f)
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
	_, sale, seen := fusingShop(t, f)
	lease := lostLease{}
	batch := []stock.Deduction{deductionOf(sale, "ann", 1)}
	_, err := f.Guarded().(stock.Fusing).DeductAndLeave(t.Context(), lease, 7, batch)
	if !errors.Is(err, lock.ErrLost) || !errors.Is(err, stock.ErrUnavailable) {
		t.Errorf("error is %v, want ErrLost, nothing deducted", err)
	}
	if len(seen.keys) != 1 {
		t.Errorf("exchanges on %q, want the read alone", seen.keys)
	}
	wantLeft(t, f, sale, 10, 0)
}

type lostLease struct{ lock.Lease }

func (lostLease) Fence() uint64 { return 7 }

func (lostLease) ReleaseAfter(context.Context, lock.Step) (any, error) { return nil, lock.ErrLost }
