package sqlstock

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"gorm.io/gorm/logger"
)

// queryLog passes gorm's log on. Errors are returned to whoever asked, so they
// are no news here; statements are shown at debug level and, when slow, as
// warnings, always with placeholders in the place of values.
type queryLog struct {
	logger *slog.Logger
	slow   time.Duration
}

var (
	_ logger.Interface = (*queryLog)(nil)
	_ interface {
		ParamsFilter(context.Context, string, ...any) (string, []any)
	} = (*queryLog)(nil)
)

func (q *queryLog) LogMode(logger.LogLevel) logger.Interface { return q }

func (q *queryLog) Info(ctx context.Context, format string, args ...any) {
	q.logger.DebugContext(ctx, fmt.Sprintf(format, args...))
}

func (q *queryLog) Warn(ctx context.Context, format string, args ...any) {
	q.logger.WarnContext(ctx, fmt.Sprintf(format, args...))
}

func (q *queryLog) Error(ctx context.Context, format string, args ...any) {
	q.logger.WarnContext(ctx, fmt.Sprintf(format, args...))
}

func (q *queryLog) Trace(ctx context.Context, begin time.Time, statement func() (string, int64), err error) {
	level, message, took := slog.LevelDebug, "sql", time.Since(begin)
	if took >= q.slow {
		level, message = slog.LevelWarn, "slow sql"
	}
	if !q.logger.Enabled(ctx, level) {
		return
	}
	sql, rows := statement()
	const longest = 300
	if len(sql) > longest {
		sql = sql[:longest] + "..."
	}
	q.logger.Log(ctx, level, message, "sql", sql, "rows", rows, "took", took, "error", err)
}

// ParamsFilter keeps buyers and prices out of the log.
func (q *queryLog) ParamsFilter(_ context.Context, sql string, _ ...any) (string, []any) {
	return sql, nil
}

// driverLog passes on what the MySQL driver would print on stderr, mostly that
// a connection ended, which its user is told by an error anyway.
type driverLog struct{ logger *slog.Logger }

func (d driverLog) Print(v ...any) { d.logger.Debug("mysql driver", "message", fmt.Sprint(v...)) }
