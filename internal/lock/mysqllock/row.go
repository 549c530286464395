package mysqllock

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/go-sql-driver/mysql"

	"flashsale/internal/lock"
)

// Row is a lock that is a row of the table flashsale_locks, locked by SELECT ... FOR
// UPDATE in a transaction on a connection of its own.
//
// Protects against:  several processes; a holder that crashes: MySQL rolls back; work longer than the TTL, which pings extend.
// Still fails when:  the process is paused past the TTL, or MySQL closes its connection, and it writes before it has heard, which it does at the next ping; MySQL fails over, which ends every lease; many wait: each key takes a connection.
// Fixed by:          the fence, checked where the guarded value is written. When that is MySQL too: one conditional UPDATE, without any lock.
type Row struct {
	db *sql.DB
	Options
	queue lock.Queue
}

// Open makes a Row with connections of its own to the database of a DSN,
// user:password@tcp(host:port)/database. It connects at the first Acquire;
// the table is made by the module's migrations. Close it when no one holds a
// lease any more.
func Open(dsn string, options Options) (*Row, error) {
	options = options.withDefaults()
	if err := options.validate(); err != nil {
		return nil, err
	}
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, fmt.Errorf("mysqllock: the DSN: %w", err)
	}
	config.Logger = &mysql.NopLogger{} // every error reaches a caller
	config.Timeout = options.Timeout
	config.InterpolateParams = true // one round trip a statement
	config.RejectReadOnly = true
	if config.Params == nil {
		config.Params = map[string]string{}
	}
	config.Params["wait_timeout"] = strconv.Itoa(int(options.TTL / time.Second))
	config.Params["innodb_lock_wait_timeout"] = strconv.Itoa(int(max(options.Wait, 0)/time.Second) + 1) // waiters end sooner, by their own clock
	config.Params["time_zone"] = "'+00:00'"                                                             // no hour twice
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, fmt.Errorf("mysqllock: %w", err)
	}
	r := &Row{db: sql.OpenDB(connector), Options: options}
	r.db.SetMaxOpenConns(2 * options.Connections) // one more each to end a waiter's
	r.db.SetMaxIdleConns(options.Connections)
	r.db.SetConnMaxIdleTime(options.TTL / 2) // MySQL ends them at TTL
	return r, nil
}

const packageName = "mysqllock"

var _ lock.Locker = (*Row)(nil)

// Acquire waits for its turn in this process, then for the row.
func (r *Row) Acquire(ctx context.Context, key string) (lock.Lease, error) {
	deadline := time.Now().Add(max(r.Wait, 0))
	turn, err := r.queue.Enter(ctx, key, r.Wait)
	if err != nil {
		return nil, fmt.Errorf("mysqllock: acquire %q: %w", key, err)
	}
	lease, err := r.lock(ctx, key, deadline, turn)
	if err != nil {
		turn.Leave()
		return nil, fmt.Errorf("mysqllock: acquire %q: %w", key, cmp.Or(lock.ContextError(ctx), err))
	}
	return lease, nil
}

// Purge deletes the rows of every key under the Prefix. Nobody may hold one.
func (r *Row) Purge(ctx context.Context) error {
	_, err := r.db.ExecContext(ctx, "DELETE FROM flashsale_locks WHERE LEFT(name, CHAR_LENGTH(?)) = ?", r.Prefix, r.Prefix)
	if err != nil && !is(err, errNoTable) {
		return fmt.Errorf("mysqllock: purge: %w", err)
	}
	return nil
}

// Close ends the connections, and so what is still held.
func (r *Row) Close() error { return r.db.Close() }

// lock takes a connection, and the row on it.
func (r *Row) lock(ctx context.Context, key string, deadline time.Time, turn *lock.Turn) (*lease, error) {
	conn, id, err := r.connect(ctx)
	if err != nil {
		return nil, lock.Unavailable(err)
	}
	l := &lease{Row: r, name: r.Prefix + key, conn: conn}
	sent, err := l.take(ctx, deadline)
	if err != nil {
		discard(conn)
		if late(err) && !r.kill(ctx, id) {
			return nil, lock.Unavailable(err)
		}
		return nil, err
	}
	l.hold(ctx, key, sent, turn)
	return l, nil
}

// connect takes a connection, and its number on the server.
func (r *Row) connect(ctx context.Context) (conn *sql.Conn, id int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	if conn, err = r.db.Conn(ctx); err != nil {
		return nil, 0, err
	}
	if err = conn.QueryRowContext(ctx, "SELECT CONNECTION_ID()").Scan(&id); err != nil {
		discard(conn)
		return nil, 0, err
	}
	return conn, id, nil
}

// kill ends a connection whose waiting was given up: MySQL doesn't look for the
// end of a client while it waits for a row. It reports whether MySQL answered.
func (r *Row) kill(ctx context.Context, id int64) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.Timeout)
	defer cancel()
	_, err := r.db.ExecContext(ctx, "KILL "+strconv.FormatInt(id, 10))
	_, answered := errors.AsType[*mysql.MySQLError](err) // gone already
	return err == nil || answered
}

// What MySQL and MariaDB say.
const (
	errLockWait = 1205 // waited too long; MariaDB: or would have to
	errNoWait   = 3572 // would have to wait
	errDeadlock = 1213
	errNoTable  = 1146
)

// late says that it was our own clock that ended a statement.
func late(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, errOwnWait)
}

var errOwnWait = fmt.Errorf("%w: the wait is over", lock.ErrNotAcquired)

// take locks the row, and counts its fence up. The lease runs from when that was
// sent: MySQL has heard of the holder since.
func (l *lease) take(ctx context.Context, deadline time.Time) (sent time.Time, err error) {
	for attempt := 1; ; attempt++ {
		there, err := l.selectRow(ctx, deadline)
		switch {
		case err != nil:
			return sent, err
		case there:
			sent = time.Now()
			return sent, l.count(ctx)
		case attempt > 3:
			return sent, lock.Unavailable(errors.New("the row comes and goes"))
		}
		if err := l.insertRow(ctx); err != nil {
			return sent, err
		}
	}
}

// selectRow waits for the row in a transaction, and reports whether there is one.
func (l *lease) selectRow(ctx context.Context, deadline time.Time) (bool, error) {
	waiting, cancel := context.WithTimeout(ctx, l.Timeout)
	statement := "SELECT fence FROM flashsale_locks WHERE name = ? FOR UPDATE NOWAIT"
	if l.Wait > 0 {
		cancel()
		waiting, cancel = context.WithDeadline(ctx, deadline)
		statement = "SELECT fence FROM flashsale_locks WHERE name = ? FOR UPDATE"
	}
	defer cancel()
	if _, err := l.conn.ExecContext(waiting, "START TRANSACTION"); err != nil {
		return false, l.waitError(ctx, waiting, err)
	}
	var fence int64
	err := l.conn.QueryRowContext(waiting, statement, l.name).Scan(&fence)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, sql.ErrNoRows):
		return false, nil
	case is(err, errNoTable):
		return false, lock.Unavailable(fmt.Errorf("no table for locks, run `flashsale migrate`: %w", err))
	default:
		return false, l.waitError(ctx, waiting, err)
	}
}

// waitError tells contention from all else.
func (l *lease) waitError(ctx, waiting context.Context, err error) error {
	switch {
	case is(err, errLockWait, errNoWait, errDeadlock):
		return fmt.Errorf("%w: %w", lock.ErrNotAcquired, err)
	case ctx.Err() != nil:
		return ctx.Err()
	case waiting.Err() != nil && l.Wait > 0:
		return errOwnWait
	default:
		return lock.Unavailable(err)
	}
}

// is reports whether err is one of these answers.
func is(err error, numbers ...uint16) bool {
	reply, answered := errors.AsType[*mysql.MySQLError](err)
	return answered && slices.Contains(numbers, reply.Number)
}

// insertRow makes the row, outside of the transaction, whose gap lock would be
// in the way of another's.
func (l *lease) insertRow(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, l.Timeout)
	defer cancel()
	if _, err := l.conn.ExecContext(ctx, "ROLLBACK"); err != nil {
		return lock.Unavailable(err)
	}
	_, err := l.conn.ExecContext(ctx, "INSERT INTO flashsale_locks (name, fence) VALUES (?, 0) ON DUPLICATE KEY UPDATE fence = fence", l.name)
	if is(err, errLockWait, errDeadlock) {
		return nil // somebody else made it, and holds it
	}
	if err != nil {
		return lock.Unavailable(err)
	}
	return nil
}

// count counts the fence, now that nobody else can. It follows the server's
// clock, so that it grows also past a holder whose transaction was rolled back,
// and with it the number that it had.
func (l *lease) count(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, l.Timeout)
	defer cancel()
	result, err := l.conn.ExecContext(ctx,
		"UPDATE flashsale_locks SET fence = LAST_INSERT_ID(GREATEST(fence + 1, CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED))) WHERE name = ?", l.name)
	if err != nil {
		return lock.Unavailable(err)
	}
	if l.fence, err = result.LastInsertId(); err != nil {
		return lock.Unavailable(err)
	}
	return nil
}

// discard closes a connection instead of giving it back.
func discard(conn *sql.Conn) {
	_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = conn.Close()
}
