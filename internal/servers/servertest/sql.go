package servertest

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"flashsale/internal/servers"
)

// SQL is the DSN of a database of the test's own, empty, which is dropped when
// the test ends. It is on a real server, or sqlite:<file> as its stand-in.
func SQL(t testing.TB) string {
	t.Helper()
	server := use(t, &sharedSQL)
	if !server.Real() {
		return "sqlite:" + filepath.Join(tempDir(t), "flashsale.db")
	}
	config, err := mysql.ParseDSN(server.(interface{ DSN() string }).DSN())
	if err != nil {
		t.Fatal(err)
	}
	name := Prefix(t)
	execute(t, config, "CREATE DATABASE "+name)
	t.Cleanup(func() {
		// A transaction that a test left open must not hang the drop.
		execute(t, config, "SET lock_wait_timeout = 10", "DROP DATABASE "+name)
	})
	config = config.Clone()
	config.DBName = name
	return config.FormatDSN()
}

// RealSQL is SQL for tests of programs that take no stand-in: without a real
// server they are skipped.
func RealSQL(t testing.TB) string {
	t.Helper()
	if given := os.Getenv(EnvSQL); given == "" || given == Embedded {
		if missing := sqlKind.missing(); missing != nil {
			record(t, servers.SQLName, "skipped")
			t.Skipf("needs a real SQL server (%v; `make deps` installs it)", missing)
		}
	}
	return SQL(t)
}

// execute runs statements on one connection.
func execute(t testing.TB, config *mysql.Config, statements ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	connector, err := mysql.NewConnector(config)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	conn, err := db.Conn(ctx)
	if err != nil {
		t.Fatal("servertest:", err)
	}
	defer conn.Close()
	for _, statement := range statements {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			t.Errorf("servertest: %s: %v", statement, err)
		}
	}
}
