package sqlstock_test

import (
	"path/filepath"
	"strings"
	"testing"

	"flashsale/internal/servers/servertest"
	"flashsale/internal/sqlstock"
	"flashsale/internal/stock"
	"flashsale/internal/stock/stocktest"
)

func sqliteDSN(t testing.TB) string {
	return "sqlite:" + filepath.Join(t.TempDir(), "a b%20?#.db")
}

// mysqlDSN is an empty database for a test of what SQLite hasn't got.
func mysqlDSN(t testing.TB) string {
	t.Helper()
	dsn := servertest.SQL(t)
	if sqlstock.IsStandIn(dsn) {
		t.Skip("needs a real SQL server")
	}
	return dsn
}

// with adds parameters to a MySQL DSN.
func with(dsn, params string) string {
	if strings.Contains(dsn, "?") {
		return dsn + "&" + params
	}
	return dsn + "?" + params
}

// eachDatabase runs a test on every database there is.
func eachDatabase(t *testing.T, test func(t *testing.T, dsn func(testing.TB) string)) {
	t.Run("SQLite", func(t *testing.T) { test(t, sqliteDSN) })
	t.Run("server", func(t *testing.T) { test(t, servertest.SQL) })
}

func open(t testing.TB, dsn string, o sqlstock.Options) *sqlstock.DB {
	t.Helper()
	db, err := sqlstock.Open(dsn, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func migrated(t testing.TB, dsn string, o sqlstock.Options) *sqlstock.DB {
	t.Helper()
	db := open(t, dsn, o)
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return db
}

// One attempt has to be enough: locks are taken in an order in which settlers
// wait for each other and never meet head on.
func TestLedger(t *testing.T) {
	eachDatabase(t, func(t *testing.T, dsn func(testing.TB) string) {
		stocktest.LedgerSuite(t, func(t *testing.T) stock.Ledger {
			return migrated(t, dsn(t), sqlstock.Options{Attempts: 1})
		})
	})
}
