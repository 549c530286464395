// Package sqlstock keeps the ledger in an SQL database: MySQL (or MariaDB), with
// SQLite as the stand-in that the demo and the tests embed. It implements
// stock.Ledger.
package sqlstock

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"gorm.io/gorm"

	"flashsale/internal/stock"
	"flashsale/migrations"
)

// Options tunes a DB. The zero value is right for a server.
type Options struct {
	MaxOpenConns    int           // connections at once; default 16, on SQLite 4
	MaxConnLifetime time.Duration // age at which a connection is replaced; default 3 min
	Attempts        int           // tries of a transaction that lost against another one; default 10
	SlowQuery       time.Duration // statements that take longer are logged as warnings; default 1 s
	Logger          *slog.Logger  // default: none
	Now             func() time.Time
}

func (o Options) withDefaults(dialect migrations.Dialect) Options {
	if o.MaxOpenConns == 0 {
		o.MaxOpenConns = 16
		if dialect == migrations.SQLite {
			o.MaxOpenConns = 4
		}
	}
	if o.MaxConnLifetime == 0 {
		o.MaxConnLifetime = 3 * time.Minute
	}
	if o.Attempts == 0 {
		o.Attempts = 10
	}
	if o.SlowQuery == 0 {
		o.SlowQuery = time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

func (o Options) validate() error {
	for _, v := range []struct {
		name  string
		value int64
	}{
		{"MaxOpenConns", int64(o.MaxOpenConns)}, {"MaxConnLifetime", int64(o.MaxConnLifetime)},
		{"Attempts", int64(o.Attempts)}, {"SlowQuery", int64(o.SlowQuery)},
	} {
		if v.value < 0 {
			return fmt.Errorf("sqlstock: Options.%s is negative", v.name)
		}
	}
	return nil
}

// DB is the ledger. It is safe for concurrent use.
type DB struct {
	gorm     *gorm.DB
	sql      *sql.DB
	dialect  migrations.Dialect
	options  Options
	schemaOK atomic.Bool // the schema has been seen to be the right one
}

var _ stock.Ledger = (*DB)(nil)

// Open makes a DB of a DSN, which has one of two forms:
//
//	user:password@tcp(host:3306)/database   MySQL or MariaDB, as of go-sql-driver/mysql
//	sqlite:path/to/file                     SQLite, the stand-in
//
// What correctness depends on (UTC, parsed times, strict mode, one statement a
// query) is set here, whatever the DSN says; timeouts only where it says none.
// A server is not contacted, it may be away now and come later; the error is
// about the DSN or the options, and about the file in the case of SQLite.
func Open(dsn string, o Options) (*DB, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	dialect, open := migrations.MySQL, openMySQL
	if IsStandIn(dsn) {
		dialect, open = migrations.SQLite, openSQLite
	}
	o = o.withDefaults(dialect)

	pool, dialector, err := open(dsn, o.Logger)
	if err != nil {
		return nil, fmt.Errorf("sqlstock: DSN: %w", err)
	}
	pool.SetMaxOpenConns(o.MaxOpenConns)
	pool.SetMaxIdleConns(o.MaxOpenConns)
	pool.SetConnMaxLifetime(o.MaxConnLifetime)

	g, err := gorm.Open(dialector, &gorm.Config{
		Logger:                   &queryLog{logger: o.Logger, slow: o.SlowQuery},
		DisableAutomaticPing:     true,
		SkipDefaultTransaction:   true,
		DisableNestedTransaction: true,
	})
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("sqlstock: open: %w", err)
	}
	return &DB{gorm: g, sql: pool, dialect: dialect, options: o}, nil
}

// IsStandIn tells a DSN of the embedded stand-in, which no server may use.
func IsStandIn(dsn string) bool { return strings.HasPrefix(dsn, sqlitePrefix) }

// Close ends all connections.
func (db *DB) Close() error { return db.sql.Close() }

// Ping asks whether the database answers: nil or stock.ErrUnavailable.
func (db *DB) Ping(ctx context.Context) error {
	return wrap(ctx, "ping", db.sql.PingContext(ctx))
}

// ServerVersion is the product and its version, such as "MariaDB 10.11.14",
// "MySQL 8.4.2" or "SQLite 3.46.0".
func (db *DB) ServerVersion(ctx context.Context) (string, error) {
	query := `SELECT VERSION()`
	if db.dialect == migrations.SQLite {
		query = `SELECT sqlite_version()`
	}
	var version string
	if err := db.sql.QueryRowContext(ctx, query).Scan(&version); err != nil {
		return "", wrap(ctx, "server version", err)
	}
	number, suffix, _ := strings.Cut(version, "-")
	switch {
	case db.dialect == migrations.SQLite:
		return "SQLite " + version, nil
	case strings.Contains(suffix, "MariaDB"):
		return "MariaDB " + number, nil
	default:
		return "MySQL " + version, nil
	}
}
