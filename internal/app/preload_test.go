package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"flashsale/internal/audit"
	"flashsale/internal/servers"
	"flashsale/internal/stock"
)

// open is an installation on stand-ins, with a schema.
func open(t *testing.T) *Installation {
	t.Helper()
	redis, sql := servers.EmbeddedRedis(), servers.SQLite(filepath.Join(t.TempDir(), "flashsale.db"))
	for _, server := range []servers.Server{redis, sql} {
		if err := server.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { server.Stop(context.Background()) })
	}
	i, err := OpenInstallation(Config{RedisAddrs: []string{redis.Addr()}, MySQLDSN: sql.DSN(), Prefix: "t"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { i.Close() })
	if _, err := i.MigrateSchema(t.Context()); err != nil {
		t.Fatal(err)
	}
	return i
}

func offer(id string) stock.Sale {
	return stock.Sale{ID: id, ItemID: id, Title: id, PriceCents: 100, Stock: 10, PerUserLimit: 1, Variant: "atomic", Fencing: true}
}

func sell(t *testing.T, i *Installation, saleID string) stock.Deduction {
	t.Helper()
	d := stock.Deduction{PurchaseID: stock.PurchaseID(saleID, "u", "k"), SaleID: saleID, ItemID: saleID, UserID: "u", Quantity: 1, PriceCents: 100, Variant: "atomic", At: time.Now().UTC()}
	results, err := i.counter.Atomic().Deduct(t.Context(), 0, []stock.Deduction{d})
	if err != nil || results[0].Err != nil {
		t.Fatal(err, results)
	}
	return d
}

func TestPreload(t *testing.T) {
	i, ctx := open(t), t.Context()
	sales := []stock.Sale{offer("a"), offer("b")}
	done, err := i.Preload(ctx, sales, false)
	if err != nil || !slices.Equal(done.Loaded, []string{"a", "b"}) {
		t.Fatalf("%+v, %v", done, err)
	}
	sell(t, i, "a")
	done, err = i.Preload(ctx, append(sales, offer("c")), false)
	if err != nil || !slices.Equal(done.There, []string{"a", "b"}) || !slices.Equal(done.Loaded, []string{"c"}) {
		t.Errorf("again: %+v, %v", done, err)
	}
	if a, err := i.Audit(ctx, "a", audit.Options{}); err != nil || a.Remaining != 9 {
		t.Errorf("preloading again changed what was sold: %+v, %v", a, err)
	}
}

func TestPreloadWithOtherTermsLoadsNothing(t *testing.T) {
	i, ctx := open(t), t.Context()
	if _, err := i.Preload(ctx, []stock.Sale{offer("b")}, false); err != nil {
		t.Fatal(err)
	}
	other := offer("b")
	other.Stock = 11
	if _, err := i.Preload(ctx, []stock.Sale{offer("a"), other}, false); !errors.Is(err, stock.ErrSaleExists) {
		t.Fatalf("error %v", err)
	}
	if _, err := i.ledger.Sale(ctx, "a"); !errors.Is(err, stock.ErrSaleNotFound) {
		t.Errorf("a sale of the refused catalogue was loaded: %v", err)
	}
}

// Redis lost its data: what stands in SQL comes back, but for a sale that has
// sold something, whose whole stock would be sold again.
func TestPreloadFromLedger(t *testing.T) {
	i, ctx := open(t), t.Context()
	over := offer("over")
	over.EndsAt = time.Now().Add(-time.Hour)
	if _, err := i.Preload(ctx, []stock.Sale{offer("begun"), offer("closed"), over}, false); err != nil {
		t.Fatal(err)
	}
	if err := i.ledger.CloseSale(ctx, "closed", time.Now()); err != nil {
		t.Fatal(err)
	}
	event := sell(t, i, "begun").Event(0)
	if _, err := i.ledger.Settle(ctx, []stock.Event{event}); err != nil {
		t.Fatal(err)
	}
	if err := i.counter.Purge(ctx); err != nil {
		t.Fatal(err)
	}
	if err := i.ledger.InsertSale(ctx, offer("new")); err != nil { // was never loaded
		t.Fatal(err)
	}

	done, err := i.PreloadFromLedger(ctx, false)
	if !errors.Is(err, stock.ErrSaleBegun) {
		t.Errorf("error %v", err)
	}
	if !slices.Equal(done.Loaded, []string{"new"}) || !slices.Equal(done.Closed, []string{"closed", "over"}) || len(done.There) != 0 {
		t.Errorf("%+v", done)
	}
	if snapshot, err := i.counter.Snapshot(ctx, "new"); err != nil || snapshot.Remaining != 10 {
		t.Errorf("%+v, %v", snapshot, err)
	}
	if _, err := i.counter.Snapshot(ctx, "begun"); !errors.Is(err, stock.ErrSaleNotFound) {
		t.Errorf("the sale that has begun was loaded: %v", err)
	}
	for _, again := range []bool{false, true} {
		if _, err := i.Preload(ctx, []stock.Sale{offer("begun")}, again); !errors.Is(err, stock.ErrSaleBegun) {
			t.Errorf("from a catalogue, again %v: %v", again, err)
		}
	}
}

// Redis was lost before the ledger had a row of what it had sold.
func TestPreloadOfWhatRedisHasLost(t *testing.T) {
	i, ctx := open(t), t.Context()
	fromSQL := offer("sql")
	fromSQL.Variant = "mysql-conditional"
	sales := []stock.Sale{offer("lost"), fromSQL}
	if err := i.ledger.InsertSale(ctx, sales[0]); err != nil {
		t.Fatal(err)
	}
	if err := i.counter.Preload(ctx, sales[0]); err != nil { // as a program did that noted nothing
		t.Fatal(err)
	}
	if done, err := i.Preload(ctx, sales, false); err != nil || !slices.Equal(done.There, []string{"lost"}) {
		t.Fatalf("%+v, %v", done, err)
	}
	sell(t, i, "lost")
	if err := i.counter.Purge(ctx); err != nil {
		t.Fatal(err)
	}

	for range 2 {
		if _, err := i.Preload(ctx, sales, false); !errors.Is(err, stock.ErrSaleLost) || !strings.Contains(err.Error(), "lost: ") || !strings.Contains(err.Error(), "--again") {
			t.Errorf("from a catalogue: %v", err)
		}
	}
	// What is sold straight out of the ledger Redis can't lose.
	done, err := i.PreloadFromLedger(ctx, false)
	if !errors.Is(err, stock.ErrSaleLost) || !slices.Equal(done.Loaded, []string{"sql"}) {
		t.Errorf("from the ledger: %+v, %v", done, err)
	}
	if _, err := i.counter.Snapshot(ctx, "lost"); !errors.Is(err, stock.ErrSaleNotFound) {
		t.Errorf("loaded all the same: %v", err)
	}
	done, err = i.Preload(ctx, sales, true)
	if err != nil || !slices.Equal(done.Loaded, []string{"lost"}) || !slices.Equal(done.There, []string{"sql"}) {
		t.Errorf("again: %+v, %v", done, err)
	}
	if a, err := i.Audit(ctx, "lost", audit.Options{}); err != nil || !a.Settled || !a.RedisLost || a.Exact() {
		t.Errorf("its audit: %+v, %v", a, err)
	}
}

// The ledger may have sales of a time with other settings, or other programs.
func TestPreloadFromLedgerNamesWhatIsNotOffered(t *testing.T) {
	i, ctx := open(t), t.Context()
	for id, variant := range map[string]string{"bare": "setnx-bare", "tree": "zookeeper", "odd": "no-such-lock", "good": "atomic"} {
		sale := offer(id)
		sale.Variant = variant
		if err := i.ledger.InsertSale(ctx, sale); err != nil {
			t.Fatal(err)
		}
	}
	done, err := i.PreloadFromLedger(ctx, false)
	if !errors.Is(err, ErrNotOffered) || !slices.Equal(done.Loaded, []string{"good"}) {
		t.Errorf("%+v, %v", done, err)
	}
	for _, want := range []string{"bare: ", "setnx-bare needs FLASHSALE_ALLOW_BROKEN_LOCKS=true", "tree: ", "zookeeper needs ZooKeeper", "odd: ", "no-such-lock is unknown"} {
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if _, err := i.counter.Snapshot(ctx, "tree"); !errors.Is(err, stock.ErrSaleNotFound) {
		t.Errorf("loaded all the same: %v", err)
	}
}

func TestPreloadFromLedgerTakesEveryPage(t *testing.T) {
	i, ctx := open(t), t.Context()
	var want []string
	for n := range 201 {
		want = append(want, fmt.Sprintf("sale-%03d", n))
		if err := i.ledger.InsertSale(ctx, offer(want[n])); err != nil {
			t.Fatal(err)
		}
	}
	if done, err := i.PreloadFromLedger(ctx, false); err != nil || !slices.Equal(done.Loaded, want) {
		t.Errorf("%d loaded, %v", len(done.Loaded), err)
	}
}
