//go:build unix

package e2e

import (
	"testing"
	"time"
)

// row is one of the ledger's, read past the programs' own code.
type row struct {
	id, user, status string
	quantity         int64
	fence            uint64
	persistedAt      time.Time
}

// rows are those of a sale, by purchase ID.
func (in *installation) rows(t testing.TB, sale string) map[string]row {
	t.Helper()
	found, err := in.db.QueryContext(t.Context(),
		"SELECT purchase_id, user_id, status, quantity, fence, persisted_at FROM purchases WHERE sale_id = ?", sale)
	if err != nil {
		t.Fatal(err)
	}
	defer found.Close()
	rows := map[string]row{}
	for found.Next() {
		var r row
		if err := found.Scan(&r.id, &r.user, &r.status, &r.quantity, &r.fence, &r.persistedAt); err != nil {
			t.Fatal(err)
		}
		rows[r.id] = r
	}
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	return rows
}

// left is what the ledger has left of a sale.
func (in *installation) left(t testing.TB, sale string) (units int64) {
	t.Helper()
	if err := in.db.QueryRowContext(t.Context(), "SELECT remaining FROM sales WHERE id = ?", sale).Scan(&units); err != nil {
		t.Fatal(err)
	}
	return units
}
