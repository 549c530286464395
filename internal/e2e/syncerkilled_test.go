//go:build unix

package e2e

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"flashsale/internal/stock"
)

// TestSyncerIsKilledInMidBatch kills a syncer whose transaction is open: a
// session of the test's own holds what it needs next.
func TestSyncerIsKilledInMidBatch(t *testing.T) {
	t.Parallel()
	in := install(t, own{})
	v, api := newVisitor(t), in.api(t)
	for _, test := range []struct {
		name     string
		modified int // rows that its transaction has changed by then, at least
		hold     func(t *testing.T, session *sql.Tx, sale string)
	}{
		{"before it has the sale's row", 0, func(t *testing.T, session *sql.Tx, sale string) {
			if _, err := session.Exec("SELECT remaining FROM sales WHERE id = ? FOR UPDATE", sale); err != nil {
				t.Fatal(err)
			}
		}},
		{"between its UPDATE and its INSERT", 1, func(t *testing.T, session *sql.Tx, sale string) {
			_, err := session.Exec(`INSERT INTO purchases (purchase_id, sale_id, user_id, quantity, price_cents, fence, status, reason, created_at, persisted_at)
				VALUES (?, ?, 'x', 1, 1, 0, 'rejected', '', NOW(6), NOW(6))`, stock.PurchaseID(sale, "load-7", "load-7"), sale)
			if err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			syncer := in.syncer(t)
			sale := fmt.Sprintf("killed-%d", len(test.name))
			v.want("201", v.createSale(api.url, sale, "atomic", loadUnits, terms{}))

			session, err := in.db.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
			if err != nil {
				t.Fatal(err)
			}
			defer session.Rollback()
			test.hold(t, session, sale)
			l := buying(t, v, []string{sale}, api.url)
			l.more(50)
			eventually(t, 30*time.Second, "the syncer waits inside its transaction", func() bool { return in.waiting(t, test.modified) })
			settled := len(in.rows(t, sale)) // by earlier batches
			syncer.kill()
			if err := session.Rollback(); err != nil {
				t.Fatal(err)
			}
			l.more(50)
			l.end()
			if rows, left := len(in.rows(t, sale)), in.left(t, sale); rows != settled || left != int64(loadUnits-settled) {
				t.Errorf("%d rows, %d units left without a syncer, %d rows before: its transaction was not one", rows, left, settled)
			}
			in.syncer(t)
			l.settle(in, api.url)
		})
	}
}

// waiting finds a transaction of this database that waits for a lock, after it
// has changed so many rows.
func (in *installation) waiting(t testing.TB, modified int) (found bool) {
	t.Helper()
	err := in.db.QueryRowContext(context.Background(), `SELECT COUNT(*) > 0 FROM information_schema.innodb_trx t
		JOIN information_schema.processlist p ON p.id = t.trx_mysql_thread_id
		WHERE t.trx_state = 'LOCK WAIT' AND t.trx_rows_modified >= ? AND p.db = DATABASE()`, modified).Scan(&found)
	if err != nil {
		t.Fatal(err)
	}
	return found
}
