package sqlstock

import (
	"gorm.io/gorm"

	"flashsale/internal/stock"
)

// Optimistic is the counter that works out what will be left, and writes it if
// the sale is still as it was read: UPDATE sales SET remaining = r - n WHERE
// remaining = r.
//
// The remaining units are their own version number: nothing else that a decision
// rests on changes, so it does no harm if they were different for a while.
//
// Protects against: overselling, lost updates and repeated requests, by itself.
// Still fails when: a crowd comes: of all that read the same number one gets through, and the others begin again until they are told that it is busy.
// Fixed by: Conditional, for which a number that has changed is no obstacle.
func (db *DB) Optimistic() stock.Counter { return &counter{DB: db, take: takeOptimistically} }

func takeOptimistically(tx *gorm.DB, read standingRow, open func(*gorm.DB) *gorm.DB, units int64) (int64, error) {
	left := read.Sale.Remaining - units
	update := open(tx.Model(&saleRow{})).Where("remaining = ?", read.Sale.Remaining).UpdateColumn("remaining", left)
	if update.Error == nil && update.RowsAffected == 0 {
		return 0, errOvertaken
	}
	return left, update.Error
}
