package sqlstock

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"flashsale/internal/stock"
	"flashsale/migrations"
)

// chunk bounds the rows of an INSERT and the values of an IN, so that a batch
// of any size is a statement that the server takes. SQLite's driver needs time
// with the square of the values in a statement: small ones are much faster.
const (
	chunk       = 1000
	sqliteChunk = 64
)

// Settle implements stock.Ledger: one READ COMMITTED transaction.
//
// The rows of the batch's sales are locked first, in ID order, so that two
// syncers that have the same events (Kafka moved a partition between them)
// settle one after the other, and the second one sees the first one's rows.
// Since a purchase that is there is left as it is, repeating a batch whose
// commit may or may not have happened is safe.
//
// An event that can't be a row at all is a *stock.InvalidError; nothing is
// settled then. Only deductions can be settled.
func (db *DB) Settle(ctx context.Context, events []stock.Event) ([]stock.Verdict, error) {
	var invalid []stock.FieldError
	for i, e := range events {
		if field := unstorable(e); field != "" {
			invalid = append(invalid, stock.FieldError{Field: fmt.Sprintf("events[%d].%s", i, field), Reason: "can't be stored"})
		}
	}
	if invalid != nil {
		return nil, fmt.Errorf("sqlstock: settle: %w", &stock.InvalidError{Fields: invalid})
	}
	if len(events) == 0 {
		return nil, nil
	}

	var verdicts []stock.Verdict
	err := db.transact(ctx, "settle", func(tx *gorm.DB) (err error) {
		verdicts, err = db.settle(tx, events)
		return err
	})
	if err != nil {
		return nil, err
	}
	return verdicts, nil
}

func (db *DB) settle(tx *gorm.DB, events []stock.Event) ([]stock.Verdict, error) {
	bySale := map[string][]int{} // sale ID -> indexes in events
	for i, e := range events {
		bySale[e.SaleID] = append(bySale[e.SaleID], i)
	}
	remaining, err := lockSales(tx, slices.Sorted(maps.Keys(bySale)))
	if err != nil {
		return nil, err
	}
	known, err := knownPurchases(tx, events)
	if err != nil {
		return nil, err
	}

	now := db.options.Now()
	verdicts := make([]stock.Verdict, len(events))
	var rows []purchaseRow
	for _, saleID := range slices.Sorted(maps.Keys(bySale)) {
		indexes := bySale[saleID]
		left, ok := remaining[saleID]
		if !ok {
			for _, i := range indexes {
				verdicts[i] = stock.VerdictUnknownSale
			}
			continue
		}
		batch := make([]stock.Event, len(indexes))
		for n, i := range indexes {
			batch[n] = events[i]
		}
		buyers, err := liveBuyers(tx, saleID, batch)
		if err != nil {
			return nil, err
		}
		settlement := stock.Settle(left, known, buyers, batch)
		for n, ruling := range settlement.Rulings {
			verdicts[indexes[n]] = ruling.Verdict
			if ruling.Verdict != stock.VerdictKnown {
				rows = append(rows, newPurchaseRow(batch[n], ruling, now))
			}
		}
		if err := subtract(tx, saleID, settlement.Subtract); err != nil {
			return nil, err
		}
	}
	size := chunk
	if db.dialect == migrations.SQLite {
		size = sqliteChunk
	}
	return verdicts, insertPurchases(tx, rows, size)
}

// lockSales locks the rows of sales in ID order and returns what is left of each.
func lockSales(tx *gorm.DB, saleIDs []string) (map[string]int64, error) {
	remaining := map[string]int64{}
	for ids := range slices.Chunk(saleIDs, chunk) {
		var rows []saleRow
		err := tx.Select("id", "remaining").Where("id IN ?", ids).Order("id").
			Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate}).Find(&rows).Error
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			remaining[row.ID] = row.Remaining
		}
	}
	return remaining, nil
}

// knownPurchases tells which of the events have a row, whatever became of them.
func knownPurchases(tx *gorm.DB, events []stock.Event) (map[string]bool, error) {
	known := map[string]bool{}
	for part := range slices.Chunk(events, chunk) {
		ids := make([]string, len(part))
		for i, e := range part {
			ids[i] = e.PurchaseID
		}
		var found []string
		if err := tx.Model(&purchaseRow{}).Where("purchase_id IN ?", ids).Pluck("purchase_id", &found).Error; err != nil {
			return nil, err
		}
		for _, id := range found {
			known[id] = true
		}
	}
	return known, nil
}

// liveBuyers tells which of the events' users have a purchase that stands.
func liveBuyers(tx *gorm.DB, saleID string, events []stock.Event) (map[string]bool, error) {
	buyers := map[string]bool{}
	for part := range slices.Chunk(events, chunk) {
		users := make([]string, len(part))
		for i, e := range part {
			users[i] = e.UserID
		}
		var found []string
		err := tx.Model(&purchaseRow{}).Where("sale_id = ? AND user_id IN ? AND live = 1", saleID, users).
			Pluck("user_id", &found).Error
		if err != nil {
			return nil, err
		}
		for _, user := range found {
			buyers[user] = true
		}
	}
	return buyers, nil
}

// subtract takes units off a sale. The row is locked and was read, so the
// condition always holds; if it does not, somebody has changed remaining
// without the lock, and the batch is judged anew.
func subtract(tx *gorm.DB, saleID string, units int64) error {
	if units == 0 {
		return nil
	}
	result := tx.Model(&saleRow{}).Where("id = ? AND remaining >= ?", saleID, units).
		UpdateColumn("remaining", gorm.Expr("remaining - ?", units))
	if result.Error == nil && result.RowsAffected == 0 {
		return errOvertaken
	}
	return result.Error
}

// insertPurchases is a plain INSERT. IGNORE would drop a row that collides with
// another purchase's key and call it done. Under the sale's lock nothing can
// collide; if it does, somebody has inserted without the lock: judge anew.
func insertPurchases(tx *gorm.DB, rows []purchaseRow, size int) error {
	for part := range slices.Chunk(rows, size) {
		if err := tx.Create(&part).Error; err != nil {
			if duplicate(err) {
				return fmt.Errorf("%w: %w", errOvertaken, err)
			}
			return err
		}
	}
	return nil
}
