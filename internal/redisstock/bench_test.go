package redisstock

import (
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

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
