// Package migrations holds the schema of the SQL ledger, one folder a dialect,
// embedded into the programs.
//
// MySQL commits each DDL statement by itself, so a program that dies during a
// migration leaves half of it behind. Two rules make a repetition enough there:
// a file holds one statement in each direction, and that can be run again (IF
// NOT EXISTS, IF EXISTS). SQLite does a file as a whole or not at all, and the
// statements must fail when they have been run: that is how a migrator notices
// that another one was faster.
package migrations

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
)

// Version is the schema that this code reads and writes: the number of the last
// file in each folder.
const Version int64 = 6

// Table is where the database remembers which migrations it has had.
const Table = "flashsale_schema"

// Dialect names a folder of migrations.
type Dialect string

// The dialects there are. SQLite is the embedded stand-in.
const (
	MySQL  Dialect = "mysql"
	SQLite Dialect = "sqlite"
)

//go:embed mysql/*.sql sqlite/*.sql
var files embed.FS

// Up brings the database to Version. Any number of programs may do so at once:
// on MySQL one after the other under a named lock of the server, on SQLite by
// repeating what another one got in the way of.
func Up(ctx context.Context, db *sql.DB, dialect Dialect) error {
	return run(ctx, db, dialect, func(p *goose.Provider) error {
		_, err := p.Up(ctx)
		return err
	})
}

// DownTo takes the database back to an earlier version; 0 removes the tables
// and all that they hold.
func DownTo(ctx context.Context, db *sql.DB, dialect Dialect, version int64) error {
	return run(ctx, db, dialect, func(p *goose.Provider) error {
		_, err := p.DownTo(ctx, version)
		return err
	})
}

// Current is the version that the database has, 0 if it has no schema yet. It
// only reads.
func Current(ctx context.Context, db *sql.DB, dialect Dialect) (int64, error) {
	if exists, err := tableExists(ctx, db, dialect); err != nil || !exists {
		return 0, err
	}
	var version sql.NullInt64
	err := db.QueryRowContext(ctx, `SELECT MAX(version_id) FROM `+Table+` WHERE is_applied = 1`).Scan(&version)
	return version.Int64, err
}

func tableExists(ctx context.Context, db database.DBTxConn, dialect Dialect) (bool, error) {
	query := `SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = ?`
	if dialect == SQLite {
		query = `SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = ?`
	}
	var tables int
	err := db.QueryRowContext(ctx, query, Table).Scan(&tables)
	return tables > 0, err
}

func run(ctx context.Context, db *sql.DB, dialect Dialect, do func(*goose.Provider) error) error {
	folder, err := fs.Sub(files, string(dialect))
	if err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	options := []goose.ProviderOption{
		goose.WithTableName(Table),
		goose.WithDisableGlobalRegistry(true),
		goose.WithSlog(slog.New(slog.DiscardHandler)),
	}
	gooseDialect, attempts := goose.DialectSQLite3, sqliteAttempts
	if dialect == MySQL {
		if err := ensureTable(ctx, db); err != nil {
			return fmt.Errorf("migrations: %w", err)
		}
		gooseDialect, attempts = goose.DialectMySQL, 1
		options = append(options, goose.WithSessionLocker(namedLock{}))
	}
	for ; ; attempts-- {
		provider, err := goose.NewProvider(gooseDialect, db, folder, options...)
		if err != nil {
			return fmt.Errorf("migrations: %w", err)
		}
		if err = do(provider); err == nil {
			return nil
		}
		if attempts <= 1 || ctx.Err() != nil {
			return fmt.Errorf("migrations: %w", err)
		}
	}
}

// sqliteAttempts bounds the repetitions on SQLite. Who loses against another
// migrator finds that one's work done when it looks again. Each repetition
// means that somebody else has made a step, of which there are as many as
// versions and the table of them.
const sqliteAttempts = int(Version) + 2
