package sqlstock_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"flashsale/internal/servers/servertest"
	"flashsale/internal/sqlstock"
	"flashsale/internal/stock"
)

func event(saleID string, n int) stock.Event {
	return stock.Event{
		Version: stock.EventVersion, Type: stock.Deducted, PurchaseID: stock.PurchaseID(saleID, fmt.Sprint("user", n), ""),
		SaleID: saleID, ItemID: saleID, UserID: fmt.Sprint("user", n), Quantity: 1, PriceCents: 100,
		Variant: "none", At: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
	}
}

func insertSale(t testing.TB, db *sqlstock.DB, id string, units int64) {
	t.Helper()
	sale := stock.Sale{ID: id, ItemID: id, Title: id, Stock: units, PerUserLimit: 1, Variant: "none"}
	if err := db.InsertSale(t.Context(), sale); err != nil {
		t.Fatal(err)
	}
}

// An API may start while the database is away, and has to see it come, go and
// come again.
func TestDatabaseAwayAndBack(t *testing.T) {
	server := servertest.SQLServer(t)
	server.Kill()

	db := open(t, server.DSN(), sqlstock.Options{})
	away := func() {
		t.Helper()
		_, errSettle := db.Settle(t.Context(), []stock.Event{event("s", 1)})
		_, errSale := db.Sale(t.Context(), "s")
		for call, err := range map[string]error{
			"Ping": db.Ping(t.Context()), "CheckSchema": db.CheckSchema(t.Context()), "Migrate": db.Migrate(t.Context()),
			"Settle": errSettle, "Sale": errSale, "EachPurchase": db.EachPurchase(t.Context(), "s", nil),
		} {
			if !errors.Is(err, stock.ErrUnavailable) || errors.Is(err, sqlstock.ErrSchema) {
				t.Errorf("%s: %v, want ErrUnavailable", call, err)
			}
		}
	}
	away()

	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Sale(t.Context(), "s"); !errors.Is(err, sqlstock.ErrSchema) {
		t.Errorf("it came without a schema: %v", err)
	}
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	insertSale(t, db, "s", 5)
	server.Kill()
	away()

	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err := db.Settle(t.Context(), []stock.Event{event("s", 1)}); err != nil || got[0] != stock.VerdictPersisted {
		t.Errorf("after its return: %v, %v", got, err)
	}
}

func TestCallerGivesUp(t *testing.T) {
	eachDatabase(t, func(t *testing.T, dsn func(testing.TB) string) {
		db := migrated(t, dsn(t), sqlstock.Options{})
		insertSale(t, db, "s", 5)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := db.Settle(ctx, []stock.Event{event("s", 1)})
		if !errors.Is(err, context.Canceled) || errors.Is(err, stock.ErrUnavailable) {
			t.Errorf("cancelled: %v", err)
		}
		ctx, cancel = context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
		defer cancel()
		if _, err := db.Settle(ctx, []stock.Event{event("s", 1)}); !errors.Is(err, stock.ErrUnavailable) {
			t.Errorf("too slow: %v, want ErrUnavailable", err)
		}
	})
}

// Another transaction holds the sale for longer than a lock is waited for.
func TestLockIsWaitedForButNotForEver(t *testing.T) {
	db := migrated(t, with(mysqlDSN(t), "innodb_lock_wait_timeout=1"), sqlstock.Options{Attempts: 2})
	insertSale(t, db, "s", 5)

	tx, err := rawSQL(t, db).Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.Exec("UPDATE sales SET remaining = 4"); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Settle(t.Context(), []stock.Event{event("s", 1)}); !errors.Is(err, stock.ErrUnavailable) {
		t.Fatalf("the sale's row is held: %v, want ErrUnavailable", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err = db.Settle(ctx, []stock.Event{event("s", 1)})
	if took := time.Since(began); !errors.Is(err, stock.ErrUnavailable) || took > 900*time.Millisecond {
		t.Errorf("the caller's time is up: %v after %v", err, took)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if got, err := db.Settle(t.Context(), []stock.Event{event("s", 1)}); err != nil || got[0] != stock.VerdictPersisted {
		t.Errorf("after the rollback: %v, %v", got, err)
	}
}

// The transaction that loses a deadlock is begun again.
func TestDeadlockIsRepeated(t *testing.T) {
	db := migrated(t, mysqlDSN(t), sqlstock.Options{})
	for _, id := range []string{"a", "b"} {
		insertSale(t, db, id, 5)
	}
	raw := rawSQL(t, db)
	tx, err := raw.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	// What has changed rows is spared, what has only locked some is sacrificed.
	if _, err := tx.Exec("UPDATE sales SET remaining = 3 WHERE id = 'b'"); err != nil {
		t.Fatal(err)
	}
	settled := make(chan error, 1)
	go func() {
		_, err := db.Settle(t.Context(), []stock.Event{event("a", 1), event("b", 1)})
		settled <- err
	}()
	for waiting, deadline := 0, time.Now().Add(10*time.Second); waiting == 0; {
		<-time.After(150 * time.Millisecond) // InnoDB renews this table when it was not read for 100 ms
		const query = `SELECT COUNT(*) FROM information_schema.innodb_trx AS t JOIN information_schema.processlist AS p
			ON p.id = t.trx_mysql_thread_id WHERE t.trx_state = 'LOCK WAIT' AND p.db = DATABASE()`
		if err := raw.QueryRow(query).Scan(&waiting); err != nil || time.Now().After(deadline) {
			t.Fatal("settling does not wait for the row", err)
		}
	}
	if _, err := tx.Exec("UPDATE sales SET remaining = 4 WHERE id = 'a'"); err != nil {
		t.Fatal("the wrong transaction was sacrificed:", err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-settled; err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]int64{"a": 3, "b": 2} {
		if sale, err := db.Sale(t.Context(), id); err != nil || sale.Remaining != want {
			t.Errorf("sale %s: %d remaining, %v, want %d", id, sale.Remaining, err, want)
		}
	}
}

// The commit happens and its answer gets lost: the caller can't tell, settles
// again, and nothing is counted twice.
func TestLostCommitReply(t *testing.T) {
	var cut atomic.Bool
	mysql.RegisterDialContext("cut", func(ctx context.Context, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		return &cutConn{Conn: conn, cut: &cut}, err
	})
	t.Cleanup(func() { mysql.DeregisterDialContext("cut") })
	db := migrated(t, strings.Replace(mysqlDSN(t), "tcp(", "cut(", 1), sqlstock.Options{})
	insertSale(t, db, "s", 2)
	events := []stock.Event{event("s", 1), event("s", 2), event("s", 3)}

	cut.Store(true)
	if _, err := db.Settle(t.Context(), events); !errors.Is(err, stock.ErrUnavailable) {
		t.Fatalf("answer lost: %v, want ErrUnavailable", err)
	}
	if cut.Load() {
		t.Fatal("no commit was cut off")
	}
	totals := func() stock.LedgerTotals {
		t.Helper()
		got, err := db.Totals(t.Context(), "s")
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	want := stock.LedgerTotals{Persisted: 2, Rejected: 1, Rows: 3}
	if got := totals(); got != want {
		t.Fatalf("the commit did not happen: %+v", got)
	}
	verdicts, err := db.Settle(t.Context(), events)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range verdicts {
		if v != stock.VerdictKnown {
			t.Errorf("event %d settled again: %s", i, v)
		}
	}
	sale, err := db.Sale(t.Context(), "s")
	if got := totals(); got != want || err != nil || sale.Remaining != 0 {
		t.Errorf("after the repetition: %+v, %d remaining, %v", got, sale.Remaining, err)
	}
}

// cutConn lets a COMMIT and the server's work on it through, and then breaks in
// the place of the answer.
type cutConn struct {
	net.Conn
	cut  *atomic.Bool
	torn bool
}

func (c *cutConn) Write(b []byte) (int, error) {
	if bytes.HasSuffix(b, []byte("COMMIT")) && c.cut.CompareAndSwap(true, false) {
		c.torn = true
	}
	return c.Conn.Write(b)
}

func (c *cutConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.torn {
		c.Conn.Close()
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}
