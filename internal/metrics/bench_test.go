package metrics

import (
	"context"
	"log/slog"
	"testing"

	"flashsale/internal/lock"
	"flashsale/internal/stock"
)

// BenchmarkObserved tells what counting and timing add to a purchase, a lock and
// an event that do nothing.
func BenchmarkObserved(b *testing.B) {
	ctx := context.Background()
	run := func(name string, do func()) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				do()
			}
		})
	}
	m := New([]string{"atomic", "setnx"})
	seller := stock.Seller(sellerFunc(func() (stock.Receipt, error) { return stock.Receipt{Variant: "atomic"}, nil }))
	for name, s := range map[string]stock.Seller{"purchase/plain": seller, "purchase/observed": m.Seller(seller, []string{"accepted"}, outcomeOf)} {
		run(name, func() { _, _ = s.Purchase(ctx, stock.Request{}) })
	}
	locker := lock.Locker(fakeLocker{})
	for name, l := range map[string]lock.Locker{"lock/plain": locker, "lock/observed": m.Locks(slog.New(slog.DiscardHandler)).Observe("setnx", locker)} {
		run(name, func() {
			lease, _ := l.Acquire(ctx, "phone")
			_ = lease.Release(ctx)
		})
	}
	events, verdicts := make([]stock.Event, 500), make([]stock.Verdict, 500)
	for i := range events {
		events[i].Variant, verdicts[i] = "atomic", stock.VerdictPersisted
	}
	settler := m.Settler(settlerFunc(func() ([]stock.Verdict, error) { return verdicts, nil }))
	run("settle/500 observed", func() { _, _ = settler.Settle(ctx, events) })
}
