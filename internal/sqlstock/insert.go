package sqlstock

import (
	"errors"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"
)

// insertRows is how many rows the prepared INSERT has. More rows a statement
// gain nothing; SQLite's driver, which needs time with the square of the values
// in a statement, even loses.
const insertRows = 100

// errTaken says that a key of a row that was to be inserted is taken. The
// transaction can't go on: rows before it may have been inserted.
var errTaken = errors.New("key is taken")

const insertHead = "INSERT INTO purchases (purchase_id, sale_id, user_id, quantity, price_cents, fence, status, reason, live, created_at, persisted_at) VALUES "

// insertStatement is for insertRows rows.
var insertStatement = func() string {
	const row = "(?,?,?,?,?,?,?,?,?,?,?)"
	return insertHead + strings.Repeat(row+",", insertRows-1) + row
}()

// insertPurchases is a plain INSERT. IGNORE would drop a row that collides with
// another purchase's key and call it done.
//
// All but the last rows of many go through one prepared statement, which the
// server need not parse again, and past gorm, whose Create takes longer than the
// server does.
func insertPurchases(tx *gorm.DB, rows []purchaseRow) error {
	many := len(rows) / insertRows * insertRows
	if err := insertMany(tx, rows[:many]); err != nil {
		return taken(err)
	}
	for part := range slices.Chunk(rows[many:], sqliteChunk) {
		if err := tx.Create(&part).Error; err != nil {
			return taken(err)
		}
	}
	return nil
}

// insertMany inserts a multiple of insertRows.
func insertMany(tx *gorm.DB, rows []purchaseRow) error {
	if len(rows) == 0 {
		return nil
	}
	ctx := tx.Statement.Context
	statement, err := tx.Statement.ConnPool.PrepareContext(ctx, insertStatement)
	if err != nil {
		return err
	}
	defer statement.Close()
	values := make([]any, 0, 11*insertRows)
	for part := range slices.Chunk(rows, insertRows) {
		values = values[:0]
		for i := range part {
			values = part[i].appendTo(values)
		}
		began := time.Now()
		_, err := statement.ExecContext(ctx, values...)
		tx.Logger.Trace(ctx, began, func() (string, int64) { return insertStatement, insertRows }, err)
		if err != nil {
			return err
		}
	}
	return nil
}

// appendTo appends the row's values in the order of insertHead.
func (r *purchaseRow) appendTo(values []any) []any {
	var live any // a pointer to nothing would do, but takes reflection
	if r.Live != nil {
		live = int64(*r.Live)
	}
	return append(values, r.PurchaseID, r.SaleID, r.UserID, r.Quantity, r.PriceCents, r.Fence,
		string(r.Status), r.Reason, live, r.CreatedAt, r.PersistedAt)
}

func taken(err error) error {
	if duplicate(err) {
		return errors.Join(errTaken, err)
	}
	return err
}
