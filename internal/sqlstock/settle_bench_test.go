package sqlstock_test

import (
	"fmt"
	"testing"

	"flashsale/internal/servers/servertest"
	"flashsale/internal/sqlstock"
	"flashsale/internal/stock"
)

// BenchmarkSettle reports rows/s of one syncer with batches of 500.
func BenchmarkSettle(b *testing.B) {
	for name, dsn := range map[string]func(testing.TB) string{"SQLite": sqliteDSN, "server": servertest.SQL} {
		for _, sales := range []int{1, 20} {
			b.Run(fmt.Sprintf("%s/sales=%d", name, sales), func(b *testing.B) {
				db := migrated(b, dsn(b), sqlstock.Options{})
				for s := range sales {
					insertSale(b, db, fmt.Sprint("sale-", s), 1<<40)
				}
				const rows = 500
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
