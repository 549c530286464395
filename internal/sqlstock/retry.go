package sqlstock

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"time"

	"gorm.io/gorm"
)

// The pause before a repetition is drawn from [0, backoff], which doubles from
// one to the next: transactions that met once should not meet again.
const (
	firstBackoff = 4 * time.Millisecond
	maxBackoff   = 500 * time.Millisecond
)

// do runs one operation of the ledger against a database with the right schema
// and wraps its error.
func (db *DB) do(ctx context.Context, what string, fn func(*gorm.DB) error) error {
	if err := db.ready(ctx); err != nil {
		return fmt.Errorf("sqlstock: %s: %w", what, err)
	}
	return wrap(ctx, what, fn(db.gorm.WithContext(ctx)))
}

// transact is do in a READ COMMITTED transaction, repeated a bounded number of
// times while it loses against others. A lost connection is not repeated here:
// whether the commit happened is unknown then, and only the caller knows if
// doing it again does harm.
func (db *DB) transact(ctx context.Context, what string, fn func(*gorm.DB) error) error {
	return db.do(ctx, what, func(g *gorm.DB) error {
		backoff := firstBackoff
		for attempt := 1; ; attempt++ {
			err := g.Transaction(fn, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
			if err == nil || attempt >= db.options.Attempts || !conflict(err) {
				return err
			}
			db.options.Logger.Debug("transaction repeated", "what", what, "attempt", attempt, "error", err)
			select {
			case <-ctx.Done():
				return err
			case <-time.After(rand.N(backoff + 1)):
			}
			backoff = min(2*backoff, maxBackoff)
		}
	})
}
