package redisstock

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"flashsale/internal/lock/redislock"
	"flashsale/internal/stock"
)

// BenchmarkPurchase measures whole purchases through the Seller on a real
// Redis, alone and with 64 buyers at once, each time for one hot item. The
// variant none sells wrongly, which is why it is fast.
func BenchmarkPurchase(b *testing.B) {
	for _, name := range []string{"none", "setnx", "watchdog", "atomic"} {
		for _, buyers := range []int{1, 64} {
			b.Run("variant="+name+"/buyers="+strconv.Itoa(buyers), func(b *testing.B) { purchases(b, name, buyers) })
		}
	}
}

func purchases(b *testing.B, name string, buyers int) {
	f := onReal(b)
	seller := stock.NewDirect(stock.DirectOptions{
		Sales: f.Store, Variants: map[string]stock.Variant{name: newVariant(b, f, name)},
	})
	err := f.Preload(b.Context(), stock.Sale{
		ID: "hot", ItemID: "hot", Title: "Hot", Stock: stock.MaxStock, PerUserLimit: 1, Variant: name, Fencing: true,
	})
	if err != nil {
		b.Fatal(err)
	}
	var users, busy atomic.Int64
	done := make(chan struct{})
	b.ReportAllocs()
	b.ResetTimer()
	for range buyers {
		go func() {
			defer func() { done <- struct{}{} }()
			for n := users.Add(1); n <= int64(b.N); n = users.Add(1) {
				_, err := seller.Purchase(b.Context(), stock.Request{
					SaleID: "hot", UserID: "user-" + strconv.FormatInt(n, 10), Quantity: 1,
				})
				switch {
				case errors.Is(err, stock.ErrBusy):
					busy.Add(1)
				case err != nil:
					b.Error(err)
					return
				}
			}
		}()
	}
	for range buyers {
		<-done
	}
	b.StopTimer()
	b.ReportMetric(float64(int64(b.N)-busy.Load())/b.Elapsed().Seconds(), "accepted/s")

	snapshot, err := f.Snapshot(b.Context(), "hot")
	if err != nil {
		b.Fatal(err)
	}
	audit := stock.NewAudit(snapshot, stock.LedgerTotals{})
	b.ReportMetric(float64(audit.LostUpdates), "lost-updates")
	if name != "none" && audit.LostUpdates+audit.Undersold > 0 {
		b.Errorf("audit is %+v", audit)
	}
}

func newVariant(b *testing.B, f fixture, name string) stock.Variant {
	options := redislock.Options{
		Wait: time.Minute,
		Keys: func(key string) (string, string) { return f.keys.Lock(key), f.keys.Fence(key) },
	}
	switch name {
	case "setnx":
		locker, err := redislock.NewSetNX(f.client, options)
		if err != nil {
			b.Fatal(err)
		}
		return stock.Variant{Locker: locker, Counter: f.Guarded()}
	case "watchdog":
		locker, err := redislock.NewWatchdog(f.client, options)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { locker.Close() })
		return stock.Variant{Locker: locker, Counter: f.Guarded()}
	case "atomic":
		return stock.Variant{Counter: f.Atomic()}
	default:
		return stock.Variant{Counter: f.Guarded()}
	}
}

// BenchmarkAtomicRedis measures the CPU that Redis takes for a purchase of a batch:
// by the script, and in turn by plain commands that read and write as much but
// decide nothing. script/plain is what deciding in Lua costs.
func BenchmarkAtomicRedis(b *testing.B) {
	for _, size := range []int{10, 24} {
		b.Run("batch="+strconv.Itoa(size), func(b *testing.B) {
			f := onReal(b)
			sale := stock.Sale{ID: "hot", ItemID: "hot", Title: "Hot", Stock: stock.MaxStock, PerUserLimit: 1, Variant: "atomic"}
			if err := f.Preload(b.Context(), sale); err != nil {
				b.Fatal(err)
			}
			redisCPU(b, f)   // skips where it can't be told
			const turn = 100 // batches, so that the clock's resolution does no harm
			users, script, plain := 0, 0.0, 0.0
			for b.Loop() {
				before := redisCPU(b, f)
				for range turn {
					if _, err := f.Atomic().Deduct(b.Context(), 0, strangers(sale, &users, size)); err != nil {
						b.Fatal(err)
					}
				}
				between := redisCPU(b, f)
				for range turn {
					if err := plainly(b.Context(), f, strangers(sale, &users, size)); err != nil {
						b.Fatal(err)
					}
				}
				script, plain = script+between-before, plain+redisCPU(b, f)-between
			}
			purchases := float64(b.N * turn * size)
			b.ReportMetric(script*1e6/purchases, "script-us")
			b.ReportMetric(plain*1e6/purchases, "plain-us")
			b.ReportMetric(script/plain, "script/plain")
		})
	}
}

// strangers are deductions for users that nobody has been before.
func strangers(sale stock.Sale, users *int, n int) []stock.Deduction {
	batch := make([]stock.Deduction, n)
	for i := range batch {
		*users++
		batch[i] = deductionOf(sale, "user-"+strconv.Itoa(*users), 1)
	}
	return batch
}

func plainly(ctx context.Context, f fixture, batch []stock.Deduction) error {
	var ids, users, events []string
	var purchases, buyers []any
	for _, d := range batch {
		text, err1 := wholeAnswer(d, 0, stock.MaxStock)
		event, err2 := eventOf(d, 0)
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		ids, users, events = append(ids, d.PurchaseID), append(users, d.UserID), append(events, event)
		purchases, buyers = append(purchases, d.PurchaseID, text), append(buyers, d.UserID, d.PurchaseID)
	}
	keys := f.deductKeys(batch[0].SaleID)
	_, err := f.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.HMGet(ctx, keys[2], ids...)
		p.HMGet(ctx, keys[1], users...)
		p.HSet(ctx, keys[2], purchases...)
		p.HSet(ctx, keys[1], buyers...)
		p.XAdd(ctx, &redis.XAddArgs{Stream: keys[3], Values: []string{"d", "[" + strings.Join(events, ",") + "]"}})
		return nil
	})
	return err
}

// redisCPU is the CPU time that Redis has used until now, in seconds.
func redisCPU(b *testing.B, f fixture) (seconds float64) {
	info, err := f.client.Info(b.Context(), "cpu").Result()
	if err != nil {
		b.Skip("this Redis does not tell its CPU time: ", err)
	}
	for _, name := range []string{"used_cpu_user:", "used_cpu_sys:"} {
		_, rest, _ := strings.Cut(info, name)
		text, _, _ := strings.Cut(rest, "\r\n")
		spent, err := strconv.ParseFloat(text, 64)
		if err != nil {
			b.Skip("this Redis does not tell its CPU time: ", info)
		}
		seconds += spent
	}
	return seconds
}
