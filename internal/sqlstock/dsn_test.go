package sqlstock_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"flashsale/internal/sqlstock"
	"flashsale/internal/stock"
)

func TestWrongDSN(t *testing.T) {
	for name, c := range map[string]struct{ dsn, text string }{
		"empty":           {"", "want user:password@tcp(host:3306)/database"},
		"no slash":        {"root:secret@tcp(127.0.0.1:1)", "missing the slash"},
		"no database":     {"root:secret@tcp(127.0.0.1:1)/", "names no database"},
		"URL":             {"mysql://root:secret@127.0.0.1:1/shop", "it is a URL (mysql://...)"},
		"no parentheses":  {"root:secret@127.0.0.1:1/shop", "want user:password@tcp(host:3306)/database"},
		"unknown TLS":     {"root:secret@tcp(127.0.0.1:1)/shop?tls=nope", "nope"},
		"bad duration":    {"root:secret@tcp(127.0.0.1:1)/shop?timeout=3", "missing unit in duration"},
		"no file":         {"sqlite:", "want sqlite:path/to/file"},
		"SQLite's memory": {"sqlite::memory:", "want sqlite:path/to/file"},
	} {
		t.Run(name, func(t *testing.T) {
			db, err := sqlstock.Open(c.dsn, sqlstock.Options{})
			if err == nil {
				db.Close()
				t.Fatal("no error")
			}
			if !strings.Contains(err.Error(), c.text) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %q, want %q in it and no password", err, c.text)
			}
		})
	}
}

func TestMissingFolderOfAnSQLiteFile(t *testing.T) {
	_, err := sqlstock.Open("sqlite:"+filepath.Join(t.TempDir(), "nope", "x.db"), sqlstock.Options{})
	if err == nil {
		t.Error("no error")
	}
}

func TestWrongOptions(t *testing.T) {
	for name, o := range map[string]sqlstock.Options{
		"MaxOpenConns": {MaxOpenConns: -1}, "MaxConnLifetime": {MaxConnLifetime: -1},
		"Attempts": {Attempts: -1}, "SlowQuery": {SlowQuery: -1},
	} {
		if _, err := sqlstock.Open(sqliteDSN(t), o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Whatever the DSN says of times, sets and modes, the session is as the ledger
// needs it; what it says of timeouts stays.
func TestSessionIsTheLedgersOwn(t *testing.T) {
	dsn := with(mysqlDSN(t), "loc=Asia%2FShanghai&parseTime=false&interpolateParams=false&multiStatements=true"+
		"&charset=latin1&sql_mode=''&innodb_lock_wait_timeout=7&time_zone='%2B08:00'")
	db := migrated(t, dsn, sqlstock.Options{})
	raw := rawSQL(t, db)

	var mode, set, wait string
	err := raw.QueryRow("SELECT @@sql_mode, @@character_set_client, @@innodb_lock_wait_timeout").Scan(&mode, &set, &wait)
	if err != nil || !strings.Contains(mode, "STRICT_TRANS_TABLES") || set != "utf8mb4" || wait != "7" {
		t.Errorf("sql_mode %q, character set %q, lock wait %q, %v", mode, set, wait, err)
	}
	if _, err := raw.Exec("SELECT 1; SELECT 2"); err == nil {
		t.Error("several statements in a query are possible")
	}

	at := time.Date(2026, 3, 29, 2, 30, 0, 1000, time.UTC)
	sale := stock.Sale{ID: "s", ItemID: "i", Title: "限时", Stock: 1, PerUserLimit: 1, Variant: "none", StartsAt: at}
	if err := db.InsertSale(t.Context(), sale); err != nil {
		t.Fatal(err)
	}
	var text string
	if err := raw.QueryRow("SELECT CAST(starts_at AS CHAR) FROM sales").Scan(&text); err != nil || text != "2026-03-29 02:30:00.000001" {
		t.Errorf("stored %q, %v", text, err)
	}
	if err := db.InsertSale(t.Context(), sale); err != nil {
		t.Error(err)
	}
	sale.ID, sale.Title = "long", strings.Repeat("x", 256)
	if err := db.InsertSale(t.Context(), sale); err == nil || errors.Is(err, stock.ErrUnavailable) {
		t.Errorf("a title that doesn't fit: %v", err)
	}
}

func TestServerVersion(t *testing.T) {
	eachDatabase(t, func(t *testing.T, dsn func(testing.TB) string) {
		d := dsn(t)
		want := "M" // MariaDB or MySQL
		if sqlstock.IsStandIn(d) {
			want = "SQLite 3."
		}
		if got, err := open(t, d, sqlstock.Options{}).ServerVersion(t.Context()); err != nil || !strings.HasPrefix(got, want) {
			t.Errorf("%q, %v, want %s...", got, err, want)
		}
	})
}
