package sqlstock_test

import (
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"flashsale/internal/servers/servertest"
	"flashsale/internal/sqlstock"
	"flashsale/internal/stock"
)

// BenchmarkSettle reports rows/s of one syncer with batches of 2000, on new
// purchases.
func BenchmarkSettle(b *testing.B) {
	for name, dsn := range map[string]func(testing.TB) string{"SQLite": sqliteDSN, "server": servertest.SQL} {
		for _, sales := range []int{1, 20} {
			b.Run(fmt.Sprintf("%s/sales=%d", name, sales), func(b *testing.B) {
				db := migrated(b, dsn(b), sqlstock.Options{})
				for s := range sales {
					insertSale(b, db, fmt.Sprint("sale-", s), 1<<40)
				}
				const rows = 2000
				n := 0
				for b.Loop() {
					batch := make([]stock.Event, rows)
					for i := range batch {
						batch[i] = event(fmt.Sprint("sale-", i%sales), n)
						n++
					}
					if _, err := db.Settle(b.Context(), batch); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "rows/s")
			})
		}
	}
}

// BenchmarkSettleOverBare settles batches of several sizes in turn with a bare
// prepared INSERT of 500 rows a transaction, 2000 rows each, and reports how many
// times as fast they are. The table is emptied every now and then: a full one
// makes everything equally slow.
func BenchmarkSettleOverBare(b *testing.B) {
	const rows, bareRows = 2000, 500
	db := migrated(b, mysqlDSN(b), sqlstock.Options{})
	insertSale(b, db, "sale", 1<<40)
	pool := sqlstock.Pool(db)
	const row = "(?,?,?,?,?,?,?,?,?,?,?)"
	statement, err := pool.Prepare("INSERT INTO purchases (purchase_id, sale_id, user_id, quantity, price_cents, fence, status, reason, live, created_at, persisted_at) VALUES " +
		strings.Repeat(row+",", bareRows-1) + row)
	if err != nil {
		b.Fatal(err)
	}
	defer statement.Close()
	ways := []struct {
		name   string
		insert func([]stock.Event) error
	}{
		{"bare", func(events []stock.Event) error { return bare(statement, bareRows, events) }},
		{"500", settling(b, db, 500)},
		{"1000", settling(b, db, 1000)},
		{"2000", settling(b, db, 2000)},
	}
	took := make([]time.Duration, len(ways))
	for n := 0; b.Loop(); {
		if n%(20*rows*len(ways)) == 0 {
			if _, err := pool.Exec("TRUNCATE TABLE purchases"); err != nil {
				b.Fatal(err)
			}
		}
		for i, way := range ways {
			batch := events("sale", n, n+rows)
			n += rows
			began := time.Now()
			if err := way.insert(batch); err != nil {
				b.Fatal(err)
			}
			took[i] += time.Since(began)
		}
	}
	for i, way := range ways[1:] {
		b.ReportMetric(took[0].Seconds()/took[i+1].Seconds(), way.name+"/bare")
	}
	b.ReportMetric(float64(b.N*rows)/took[0].Seconds(), "bare-rows/s")
}

func settling(b *testing.B, db *sqlstock.DB, size int) func([]stock.Event) error {
	return func(events []stock.Event) error {
		for part := range slices.Chunk(events, size) {
			if _, err := db.Settle(b.Context(), part); err != nil {
				return err
			}
		}
		return nil
	}
}

func bare(statement *sql.Stmt, size int, events []stock.Event) error {
	for part := range slices.Chunk(events, size) {
		values := make([]any, 0, 11*size)
		for _, e := range part {
			values = append(values, e.PurchaseID, e.SaleID, e.UserID, e.Quantity, e.PriceCents, 0, "persisted", "", 1, e.At, time.Now().UTC())
		}
		if _, err := statement.Exec(values...); err != nil {
			return err
		}
	}
	return nil
}
