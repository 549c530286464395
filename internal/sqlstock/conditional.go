package sqlstock

import (
	"gorm.io/gorm"

	"flashsale/internal/stock"
)

// Conditional is the counter whose UPDATE asks for as many units as it takes:
// UPDATE sales SET remaining = remaining - n WHERE remaining >= n.
//
// Protects against: overselling, lost updates and repeated requests, by itself.
// Still fails when: a crowd comes: every purchase waits for the sale's row.
// Fixed by: selling in Redis, and settling here.
func (db *DB) Conditional() stock.Counter { return &counter{DB: db, take: takeConditionally} }

func takeConditionally(tx *gorm.DB, read standingRow, open func(*gorm.DB) *gorm.DB, units int64) (int64, error) {
	update := open(tx.Model(&saleRow{})).Where("remaining >= ?", units).
		UpdateColumn("remaining", gorm.Expr("remaining - ?", units))
	if update.Error != nil {
		return 0, update.Error
	}
	if update.RowsAffected == 0 {
		return 0, errOvertaken
	}
	var left int64 // nobody else can change it before this transaction ends
	err := tx.Model(&saleRow{}).Where("id = ?", read.Sale.ID).Pluck("remaining", &left).Error
	return left, err
}
