package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/pressly/goose/v3/database"
)

// namedLock makes migrators of one MySQL database wait for each other. The
// server frees such a lock when its connection ends, so a migrator that dies
// leaves none behind.
type namedLock struct{}

// The server knows the lock by name, whatever the database; names end at 64
// characters.
const lockName = `LEFT(CONCAT('flashsale.migrate.', DATABASE()), 64)`

// SessionLock asks again every second, so that the driver's read timeout never
// takes patient waiting for a dead connection.
func (namedLock) SessionLock(ctx context.Context, conn *sql.Conn) error {
	for {
		var granted sql.NullInt64
		if err := conn.QueryRowContext(ctx, `SELECT GET_LOCK(`+lockName+`, 1)`).Scan(&granted); err != nil {
			return err
		}
		if granted.Int64 == 1 {
			return nil
		}
		if !granted.Valid {
			return errors.New("GET_LOCK failed on the server")
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

func (namedLock) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	var released sql.NullInt64
	return conn.QueryRowContext(ctx, `SELECT RELEASE_LOCK(`+lockName+`)`).Scan(&released)
}

// ensureTable makes the table of versions with its first row, under the lock.
// goose would make it without, in two steps that MySQL commits one by one: a
// second migrator stumbles over a table that is still empty, and after a crash
// in between so does every later one.
func ensureTable(ctx context.Context, db *sql.DB) (err error) {
	store, err := database.NewStore(database.DialectMySQL, Table)
	if err != nil {
		return err
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := (namedLock{}).SessionLock(ctx, conn); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, namedLock{}.SessionUnlock(context.WithoutCancel(ctx), conn))
	}()

	exists, err := tableExists(ctx, conn, MySQL)
	if err != nil {
		return err
	}
	if !exists {
		if err := store.CreateVersionTable(ctx, conn); err != nil {
			return fmt.Errorf("create %s: %w", Table, err)
		}
	}
	rows, err := store.ListMigrations(ctx, conn)
	if err != nil || len(rows) > 0 {
		return err
	}
	return store.Insert(ctx, conn, database.InsertRequest{Version: 0})
}
