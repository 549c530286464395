package mysqllock

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	"flashsale/internal/lock"
	"flashsale/internal/lock/locktest"
	"flashsale/internal/servers/servertest"
	"flashsale/migrations"
)

func TestRowConforms(t *testing.T) {
	database(t) // starts the server, whose process is no leak of a test's
	features := locktest.Features{Excludes: true, AcrossProcesses: true, Fence: true, Expires: true, Extends: true, LeastTTL: time.Second}
	locktest.Run(t, features, func(t *testing.T) locktest.Store {
		dsn, admin := database(t)
		return locktest.Store{
			New: func(t testing.TB, s locktest.Setting) lock.Locker {
				return open(t, dsn, Options{TTL: s.TTL, Wait: s.Wait, Drift: s.Drift})
			},
			Steal:   func(t testing.TB, _ string) { killHolders(t, admin) },
			Residue: func(t testing.TB, _ string) []string { return transactions(t, admin) },
		}
	})
}

// database is one of the test's own, with the table of locks.
func database(t testing.TB) (dsn string, admin *sql.DB) {
	t.Helper()
	dsn = servertest.SQL(t)
	if strings.HasPrefix(dsn, "sqlite:") {
		t.Skip("needs row locks: SQLite has none")
	}
	admin = connect(t, dsn)
	migrate(t, admin)
	return dsn, admin
}

func migrate(t testing.TB, admin *sql.DB) {
	t.Helper()
	if err := migrations.Up(t.Context(), admin, migrations.MySQL); err != nil {
		t.Fatal(err)
	}
}

func connect(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func open(t testing.TB, dsn string, o Options) *Row {
	t.Helper()
	r, err := Open(dsn, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// refresh is how long the table of transactions has to be left alone before it
// shows what is new.
const refresh = 150 * time.Millisecond

const ofThisDatabase = ` FROM information_schema.INNODB_TRX JOIN information_schema.PROCESSLIST ON trx_mysql_thread_id = ID WHERE DB = DATABASE()`

// transactions lists those that are open in the database, once those whose
// connections have just been closed are gone.
func transactions(t testing.TB, admin *sql.DB) (list []string) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(refresh) {
		list = query(t, admin, "SELECT CONCAT(trx_id, ' ', trx_state)"+ofThisDatabase)
		if len(list) == 0 || time.Now().After(deadline) {
			return list
		}
	}
}

func killHolders(t testing.TB, admin *sql.DB) {
	t.Helper()
	var holders []string
	for deadline := time.Now().Add(5 * time.Second); len(holders) == 0 && time.Now().Before(deadline); time.Sleep(refresh) {
		holders = query(t, admin, "SELECT ID"+ofThisDatabase)
	}
	if len(holders) == 0 {
		t.Fatal("steal: nobody holds it")
	}
	for _, id := range holders {
		if _, err := admin.ExecContext(t.Context(), "KILL "+id); err != nil {
			t.Error(err)
		}
	}
}

func query(t testing.TB, db *sql.DB, statement string) (list []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), statement)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		list = append(list, text)
	}
	return list
}

// Each key that was ever used has its row, which holds the fence.
func TestManyCyclesLeaveRowsBehind(t *testing.T) {
	dsn, admin := database(t)
	locktest.RunManyCycles(t, locktest.Store{
		New:     func(t testing.TB, s locktest.Setting) lock.Locker { return open(t, dsn, Options{Wait: s.Wait}) },
		Residue: func(t testing.TB, _ string) []string { return transactions(t, admin) },
	}, "a", "b", "c", "d", "e", "f", "g", "h")
	if rows := query(t, admin, "SELECT name FROM flashsale_locks"); len(rows) != 8 {
		t.Errorf("rows: %q, want one a key", rows)
	}
}
