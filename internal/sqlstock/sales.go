package sqlstock

import (
	"context"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"flashsale/internal/stock"
	"flashsale/migrations"
)

// InsertSale implements stock.Ledger. Times and durations are kept, and
// compared, in whole microseconds.
func (db *DB) InsertSale(ctx context.Context, sale stock.Sale) error {
	return db.do(ctx, "insert sale "+sale.ID, func(g *gorm.DB) error {
		row := newSaleRow(sale)
		err := g.Create(&row).Error
		if !duplicate(err) {
			return err
		}
		there, err := saleByID(g, sale.ID)
		if err != nil {
			return err
		}
		if !there.SameTerms(storedTerms(sale)) {
			return stock.ErrSaleExists
		}
		return nil
	})
}

// Sale implements stock.Ledger.
func (db *DB) Sale(ctx context.Context, saleID string) (record stock.SaleRecord, err error) {
	err = db.do(ctx, "sale "+saleID, func(g *gorm.DB) error {
		record, err = saleByID(g, saleID)
		return err
	})
	return record, err
}

func saleByID(g *gorm.DB, saleID string) (stock.SaleRecord, error) {
	var rows []saleRow
	if err := g.Where("id = ?", saleID).Limit(1).Find(&rows).Error; err != nil {
		return stock.SaleRecord{}, err
	}
	if len(rows) == 0 {
		return stock.SaleRecord{}, stock.ErrSaleNotFound
	}
	return rows[0].record(), nil
}

// Sales implements stock.Ledger.
func (db *DB) Sales(ctx context.Context, after string, limit int) ([]stock.SaleRecord, error) {
	var rows []saleRow
	err := db.do(ctx, "sales", func(g *gorm.DB) error {
		return g.Where("id > ?", after).Order("id").Limit(limit).Find(&rows).Error
	})
	if err != nil {
		return nil, err
	}
	records := make([]stock.SaleRecord, len(rows))
	for i, row := range rows {
		records[i] = row.record()
	}
	return records, nil
}

// CloseSale implements stock.Ledger. A sale that is closed keeps the time at
// which it was closed first.
func (db *DB) CloseSale(ctx context.Context, saleID string, at time.Time) error {
	return db.do(ctx, "close sale "+saleID, func(g *gorm.DB) error {
		closed := g.Model(&saleRow{}).Where("id = ? AND closed_at IS NULL", saleID).UpdateColumn("closed_at", stored(at))
		if closed.Error != nil || closed.RowsAffected == 1 {
			return closed.Error
		}
		_, err := saleByID(g, saleID)
		return err
	})
}

// NotePreload implements stock.Ledger. Who repeats it after a lost answer may
// count a preload again that was one: more than one is all that matters.
func (db *DB) NotePreload(ctx context.Context, saleID string, again bool) error {
	return db.do(ctx, "note the preload of "+saleID, func(g *gorm.DB) error {
		row := preloadRow{SaleID: saleID, Times: 1}
		if !again {
			return g.Clauses(clause.OnConflict{DoNothing: true}).Create(&row).Error
		}
		row.Times = 2 // it was there before, whether or not that was noted
		return g.Clauses(clause.OnConflict{DoUpdates: clause.Assignments(map[string]any{"times": gorm.Expr("preloads.times + 1")})}).Create(&row).Error
	})
}

// deleteChunk bounds the rows of one transaction on MySQL.
const deleteChunk = 10_000

// DeleteSales removes sales and all their purchases for good. It is for whoever
// made them for a measurement; unknown IDs are no error.
func (db *DB) DeleteSales(ctx context.Context, saleIDs []string) error {
	for _, id := range saleIDs {
		if err := db.deleteSale(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

func (db *DB) deleteSale(ctx context.Context, saleID string) error {
	what := "delete sale " + saleID
	for deleted := int64(deleteChunk); deleted == deleteChunk && db.dialect == migrations.MySQL; {
		err := db.transact(ctx, what, func(tx *gorm.DB) error {
			result := tx.Where("sale_id = ?", saleID).Limit(deleteChunk).Delete(&purchaseRow{})
			deleted = result.RowsAffected
			return result.Error
		})
		if err != nil {
			return err
		}
	}
	// The sale's row first: whoever is settling holds it, and has to end before.
	return db.transact(ctx, what, func(tx *gorm.DB) error {
		if err := tx.Where("id = ?", saleID).Delete(&saleRow{}).Error; err != nil {
			return err
		}
		for _, row := range []any{&fenceRow{}, &preloadRow{}} {
			if err := tx.Where("sale_id = ?", saleID).Delete(row).Error; err != nil {
				return err
			}
		}
		// A purchase's ID begins with its sale's and a dot.
		if err := tx.Where("purchase_id > ? AND purchase_id < ?", saleID+".", saleID+string('.'+1)).Delete(&answerRow{}).Error; err != nil {
			return err
		}
		return tx.Where("sale_id = ?", saleID).Delete(&purchaseRow{}).Error
	})
}
