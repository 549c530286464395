package redisstock

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"flashsale/internal/stock"
)

// testSale is a sale of 10 units, preloaded.
func testSale(t testing.TB, f fixture) stock.Sale {
	t.Helper()
	sale := stock.Sale{ID: "sale", ItemID: "item", Title: "Thing", PriceCents: 5, Stock: 10, PerUserLimit: 10, Variant: "watchdog", Fencing: true}
	if err := f.Preload(t.Context(), sale); err != nil {
		t.Fatal(err)
	}
	return sale
}

func deductionOf(sale stock.Sale, user string, quantity int64) stock.Deduction {
	return stock.Deduction{
		PurchaseID: stock.PurchaseID(sale.ID, user, "key"), SaleID: sale.ID, ItemID: sale.ItemID, UserID: user,
		Quantity: quantity, PriceCents: sale.PriceCents, Variant: sale.Variant, At: time.Now().UTC(),
	}
}

// one deducts for a user, and returns the result with the batch's error in it.
func one(t testing.TB, counter stock.Counter, fence uint64, sale stock.Sale, user string, quantity int64) stock.Result {
	t.Helper()
	results, err := counter.Deduct(t.Context(), fence, []stock.Deduction{deductionOf(sale, user, quantity)})
	if err != nil {
		return stock.Result{Err: err}
	}
	return results[0]
}

func wantLeft(t testing.TB, f fixture, sale stock.Sale, remaining, accepted int64) {
	t.Helper()
	snapshot, err := f.Snapshot(t.Context(), sale.ID)
	if err != nil || snapshot.Remaining != remaining || snapshot.Accepted != accepted {
		t.Errorf("remaining %d, accepted %d (%v); want %d, %d", snapshot.Remaining, snapshot.Accepted, err, remaining, accepted)
	}
}

// deducting reports whether a script is one that takes units.
func deducting(script *script) bool {
	return script == guardedWriteScript || script == atomicScript || script == stripedWriteScript
}

func TestErrorsSayWhetherItMayHaveHappened(t *testing.T) {
	dial := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	reset := &net.OpError{Op: "read", Net: "tcp", Err: errors.New("connection reset by peer")}
	reply := redisError("OOM command not allowed when used memory > 'maxmemory'.")
	for _, test := range []struct {
		name   string
		errors []error // of the attempts, in order; nil: sent, and answered
		want   error   // nil: accepted
	}{
		{"refused connection", []error{dial}, stock.ErrUnavailable},
		{"wrapped refused connection", []error{fmt.Errorf("dial: %w", dial)}, stock.ErrUnavailable},
		{"pool exhausted", []error{redis.ErrPoolTimeout}, stock.ErrUnavailable},
		{"client closed", []error{redis.ErrClosed}, stock.ErrUnavailable},
		{"error reply", []error{reply}, stock.ErrUnavailable},
		{"lost once", []error{io.EOF, nil}, nil},
		{"lost twice", []error{io.EOF, reset}, stock.ErrOutcomeUnknown},
		{"lost, then refused connection", []error{reset, dial}, stock.ErrOutcomeUnknown},
		{"lost, then error reply", []error{io.ErrUnexpectedEOF, reply}, stock.ErrOutcomeUnknown},
		{"an error that nobody thought of", []error{errors.New("?"), errors.New("?")}, stock.ErrOutcomeUnknown},
	} {
		for name, counter := range counters {
			t.Run(test.name+"/"+name, func(t *testing.T) {
				f := onReal(t)
				sale := testSale(t, f)
				attempt := 0
				f.hook.fail = func(script *script) error {
					if !deducting(script) {
						return nil
					}
					if attempt++; attempt > len(test.errors) {
						t.Fatalf("attempt %d, want %d", attempt, len(test.errors))
					}
					return test.errors[attempt-1]
				}
				err := one(t, counter(f.Store), 0, sale, "ann", 1).Err
				if !errors.Is(err, test.want) {
					t.Errorf("error is %v, want %v", err, test.want)
				}
				if errors.Is(err, stock.ErrUnavailable) && errors.Is(err, stock.ErrOutcomeUnknown) {
					t.Errorf("error is %v: both unavailable and unknown", err)
				}
				if attempt != len(test.errors) {
					t.Errorf("%d attempts, want %d", attempt, len(test.errors))
				}
			})
		}
	}
}

type redisError string

func (e redisError) Error() string { return string(e) }
func (redisError) RedisError()     {}

func TestReadsNeverLeaveAnOutcomeUnknown(t *testing.T) {
	f := onReal(t)
	sale := testSale(t, f)
	f.hook.fail = func(*script) error { return io.EOF }
	for name, err := range map[string]error{
		"guarded read": one(t, f.Guarded(), 0, sale, "ann", 1).Err,
		"preload":      f.Preload(t.Context(), sale),
		"close":        f.Close(t.Context(), sale.ID),
	} {
		if !errors.Is(err, stock.ErrUnavailable) || errors.Is(err, stock.ErrOutcomeUnknown) {
			t.Errorf("%s: error is %v, want ErrUnavailable", name, err)
		}
	}
}

func TestNothingIsWrittenForALostCaller(t *testing.T) {
	for name, counter := range counters {
		t.Run(name, func(t *testing.T) {
			f := onReal(t)
			sale := testSale(t, f)
			ctx, lose := contextWithCause(t)
			if name == "guarded" { // lost between the read and the write
				f.hook.after = func(script *script) {
					if script == guardedReadScript {
						lose(errLost)
					}
				}
			} else {
				lose(errLost)
			}
			_, err := counter(f.Store).Deduct(ctx, 0, []stock.Deduction{deductionOf(sale, "ann", 1)})
			if !errors.Is(err, stock.ErrUnavailable) || !errors.Is(err, errLost) {
				t.Errorf("error is %v, want ErrUnavailable because of the loss", err)
			}
			wantLeft(t, f, sale, 10, 0)
		})
	}
}

func TestServerForgetsItsScripts(t *testing.T) {
	for name, counter := range counters {
		t.Run(name, func(t *testing.T) {
			f := onReal(t)
			sale := testSale(t, f)
			for n := range 3 {
				if err := f.client.ScriptFlush(t.Context()).Err(); err != nil {
					t.Fatal(err)
				}
				if err := one(t, counter(f.Store), 0, sale, fmt.Sprint("user-", n), 1).Err; err != nil {
					t.Errorf("after SCRIPT FLUSH: %v", err)
				}
			}
			wantLeft(t, f, sale, 7, 3)
		})
	}
}

// TestWrongTypesAreFoundBeforeTheFirstWrite puts something else where each of
// the keys should be. Afterwards nothing but that may have changed.
func TestWrongTypesAreFoundBeforeTheFirstWrite(t *testing.T) {
	keys := map[string]func(f fixture, sale stock.Sale) string{
		"sale":      func(f fixture, sale stock.Sale) string { return f.keys.Sale(sale.ID) },
		"buyers":    func(f fixture, sale stock.Sale) string { return f.keys.Buyers(sale.ID) },
		"purchases": func(f fixture, sale stock.Sale) string { return f.keys.Purchases(sale.ID) },
		"outbox":    func(f fixture, sale stock.Sale) string { return f.deductKeys(sale.ID)[3] },
	}
	for name, key := range keys {
		spoil := func(t *testing.T, f fixture, sale stock.Sale) {
			f.client.Del(t.Context(), key(f, sale))
			if err := f.client.Set(t.Context(), key(f, sale), "no hash", 0).Err(); err != nil {
				t.Error(err)
			}
		}
		for counterName, counter := range counters {
			t.Run(counterName+"/"+name, func(t *testing.T) {
				f := onReal(t)
				sale := testSale(t, f)
				spoil(t, f, sale)
				before := dump(t, f)
				wantUntouched(t, f, counter(f.Store), sale, &before)
			})
		}
		t.Run("guarded, in the gap/"+name, func(t *testing.T) {
			f := onReal(t)
			sale := testSale(t, f)
			var before string
			inTheGap(f, func() {
				spoil(t, f, sale)
				before = dump(t, f)
			})
			wantUntouched(t, f, f.Guarded(), sale, &before)
		})
	}
}

func TestWrongNumbersAreFoundBeforeTheFirstWrite(t *testing.T) {
	for counterName, counter := range counters {
		for _, field := range []string{"remaining", "accepted", "limit"} {
			t.Run(counterName+"/"+field, func(t *testing.T) {
				f := onReal(t)
				sale := testSale(t, f)
				if err := f.client.HSet(t.Context(), f.keys.Sale(sale.ID), field, "many").Err(); err != nil {
					t.Fatal(err)
				}
				before := dump(t, f)
				wantUntouched(t, f, counter(f.Store), sale, &before)
			})
		}
	}
}

// wantUntouched deducts in vain, and wants everything to be as it was before.
func wantUntouched(t *testing.T, f fixture, counter stock.Counter, sale stock.Sale, before *string) {
	t.Helper()
	if err := one(t, counter, 0, sale, "ann", 1).Err; !errors.Is(err, stock.ErrUnavailable) {
		t.Errorf("error is %v, want ErrUnavailable", err)
	}
	if after := dump(t, f); after != *before {
		t.Errorf("keys were\n%s\nand are\n%s", *before, after)
	}
}

// dump is everything that stands under a sale's keys.
func dump(t *testing.T, f fixture) string {
	t.Helper()
	var text strings.Builder
	for _, key := range f.deductKeys("sale") {
		var value any
		var err error
		switch kind := f.client.Type(t.Context(), key).Val(); kind {
		case "string":
			value, err = f.client.Get(t.Context(), key).Result()
		case "hash":
			value, err = f.client.HGetAll(t.Context(), key).Result() // fmt sorts it
		case "stream":
			value, err = f.client.XRange(t.Context(), key, "-", "+").Result()
		default:
			value = kind
		}
		if err != nil {
			t.Error(err)
		}
		fmt.Fprintf(&text, "%s = %v\n", key, value)
	}
	return text.String()
}

func TestLiveStockHasNoTTL(t *testing.T) {
	for name, counter := range counters {
		t.Run(name, func(t *testing.T) {
			f := onReal(t)
			sale := testSale(t, f)
			one(t, counter(f.Store), 7, sale, "ann", 1)
			for _, key := range f.deductKeys(sale.ID) {
				if ttl, err := f.client.PTTL(t.Context(), key).Result(); err != nil || ttl != -1 {
					t.Errorf("%s: TTL is %v (%v), want none", key, ttl, err)
				}
			}
		})
	}
}

func TestPreloadRefusesToSellAgainWhatRedisLost(t *testing.T) {
	f := onReal(t)
	sale := testSale(t, f)
	one(t, f.Atomic(), 0, sale, "ann", 1)
	f.client.Del(t.Context(), f.keys.Sale(sale.ID))
	if err := f.Preload(t.Context(), sale); !errors.Is(err, stock.ErrSaleExists) {
		t.Errorf("error is %v, want ErrSaleExists", err)
	}
}

func TestBatchOfTwoSalesIsRefused(t *testing.T) {
	for name, counter := range counters {
		f := onReal(t)
		sale := testSale(t, f)
		other := sale
		other.ID = "sale-2"
		_, err := counter(f.Store).Deduct(t.Context(), 0, []stock.Deduction{deductionOf(sale, "ann", 1), deductionOf(other, "ann", 1)})
		if err == nil {
			t.Errorf("%s: no error", name)
		}
		wantLeft(t, f, sale, 10, 0)
	}
}

func TestOneScriptCallMakesOneEntry(t *testing.T) {
	for name, counter := range counters {
		f := onReal(t)
		sale := testSale(t, f)
		batch := []stock.Deduction{deductionOf(sale, "ann", 1), deductionOf(sale, "bob", 2)}
		if _, err := counter(f.Store).Deduct(t.Context(), 5, batch); err != nil {
			t.Fatal(err)
		}
		messages, err := f.client.XRange(t.Context(), f.deductKeys(sale.ID)[3], "-", "+").Result()
		if err != nil || len(messages) != 1 || len(messages[0].Values) != 1 {
			t.Fatalf("%s: entries are %v, %v", name, messages, err)
		}
		first, _ := eventOf(batch[0], 5)
		second, _ := eventOf(batch[1], 5)
		if got, want := messages[0].Values["d"], "["+first+","+second+"]"; got != want {
			t.Errorf("%s: d is\n%s, want\n%s", name, got, want)
		}
	}
}

func TestOutboxPassesOnWhatItCannotSplit(t *testing.T) {
	f := onReal(t)
	outbox := NewOutbox(f.client, Options{Keys: f.keys})
	for _, fields := range [][]string{{"d", "no JSON"}, {"d", "{}"}, {"d", "[]"}, {"d", `[1,{"a":"\u00e4"}]`}, {"x", "y"}} {
		if err := f.client.XAdd(t.Context(), &redis.XAddArgs{Stream: f.keys.Outbox(3), Values: fields}).Err(); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := outbox.Read(t.Context(), 3, "", 10, 0)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, entry := range entries {
		for _, event := range entry.Events {
			got = append(got, string(event))
		}
	}
	if want := `no JSON|{}|[]|1|{"a":"\u00e4"}|{"x":"y"}`; strings.Join(got, "|") != want {
		t.Errorf("events are %q, want %q", got, want)
	}
}

func TestPurgeTakesOnlyItsOwn(t *testing.T) {
	f, other := onReal(t), onReal(t)
	for _, each := range []fixture{f, other} {
		sale := testSale(t, each)
		one(t, each.Atomic(), 0, sale, "ann", 1)
		for n := range 1200 {
			each.client.Set(t.Context(), each.keys.Lock(fmt.Sprint("item-", n)), "token", time.Minute)
		}
	}
	if err := f.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := keysOf(t, f); left != 0 {
		t.Errorf("%d keys left", left)
	}
	if left := keysOf(t, other); left != 1204 {
		t.Errorf("%d keys left of another installation, want 1204", left)
	}
}

func keysOf(t *testing.T, f fixture) int {
	t.Helper()
	n := 0
	for iterator := f.client.Scan(t.Context(), 0, f.keys.Prefix+":*", 1000).Iterator(); iterator.Next(t.Context()); {
		n++
	}
	return n
}
