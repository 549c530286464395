package mysqllock

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"flashsale/internal/lock"
)

// lease is an open transaction that has the row.
type lease struct {
	*lock.Held
	*Row
	name  string
	conn  *sql.Conn
	fence int64
}

// hold begins to keep the connection alive.
func (l *lease) hold(ctx context.Context, key string, sent time.Time, turn *lock.Turn) {
	l.Held = lock.Hold(ctx, lock.HeldOptions{
		Driver: packageName, Key: key, Sent: sent, Length: l.length(),
		Extend: l.extend, End: l.end, Timeout: l.Timeout,
		GiveUp: func() { discard(l.conn) }, // which frees the row
		Turn:   turn,
	})
}

func (l *lease) Fence() uint64 { return uint64(l.fence) }

// length is for how long a lease can be relied on.
func (l *lease) length() time.Duration { return l.TTL - l.Drift }

// extend pings. One failure is the end: a ping without an answer costs the
// connection, and the connection is the lock.
func (l *lease) extend(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(l.Timeout, l.TTL/3)) // a release must not cut one off
	defer cancel()
	if _, err := l.conn.ExecContext(ctx, "DO 0"); err != nil {
		return 0, lock.ErrLost
	}
	return l.length(), nil
}

// end commits. If that fails, the connection is no more, and was the lock.
func (l *lease) end(ctx context.Context) (there bool, err error) {
	_, err = l.conn.ExecContext(ctx, "COMMIT")
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return false, err
	case err != nil || l.IsLost():
		discard(l.conn)
		return false, nil
	}
	return true, l.conn.Close()
}
