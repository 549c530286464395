package sqlstock

import (
	"context"

	"gorm.io/gorm"

	"flashsale/internal/stock"
)

// Purchase implements stock.Ledger.
func (db *DB) Purchase(ctx context.Context, purchaseID string) (stock.Purchase, error) {
	var rows []purchaseRow
	err := db.do(ctx, "purchase "+purchaseID, func(g *gorm.DB) error {
		if err := g.Where("purchase_id = ?", purchaseID).Limit(1).Find(&rows).Error; err != nil {
			return err
		}
		if len(rows) == 0 {
			return stock.ErrPurchaseNotFound
		}
		return nil
	})
	if err != nil {
		return stock.Purchase{}, err
	}
	return rows[0].purchase(), nil
}

// PurchasesOf implements stock.Ledger, by time of purchase.
func (db *DB) PurchasesOf(ctx context.Context, saleID, userID string) ([]stock.Purchase, error) {
	var rows []purchaseRow
	err := db.do(ctx, "purchases of "+userID+" in "+saleID, func(g *gorm.DB) error {
		return g.Where("sale_id = ? AND user_id = ?", saleID, userID).Order("created_at, purchase_id").Find(&rows).Error
	})
	if err != nil {
		return nil, err
	}
	purchases := make([]stock.Purchase, len(rows))
	for i, row := range rows {
		purchases[i] = row.purchase()
	}
	return purchases, nil
}

// EachPurchase implements stock.Ledger. It reads pages and holds no connection
// while fn runs; a purchase settled meanwhile may or may not be among them.
//
// A purchase's ID begins with its sale's and a dot, which Settle insists on, so
// a sale's purchases are one stretch of the primary key: a page costs what it
// has, not what the sale has.
func (db *DB) EachPurchase(ctx context.Context, saleID string, fn func(stock.Purchase) error) error {
	const page = 2000
	after, end := saleID+".", saleID+string('.'+1)
	for {
		var rows []purchaseRow
		err := db.do(ctx, "purchases of "+saleID, func(g *gorm.DB) error {
			return g.Where("purchase_id > ? AND purchase_id < ?", after, end).Order("purchase_id").Limit(page).Find(&rows).Error
		})
		if err != nil {
			return err
		}
		for _, row := range rows {
			if err := fn(row.purchase()); err != nil {
				return err
			}
		}
		if len(rows) < page {
			return nil
		}
		after = rows[len(rows)-1].PurchaseID
	}
}

// Totals implements stock.Ledger; a sale that the ledger hasn't got is
// stock.ErrSaleNotFound.
func (db *DB) Totals(ctx context.Context, saleID string) (stock.LedgerTotals, error) {
	var sums []struct {
		Status stock.Status
		Units  int64
		Count  int64
	}
	var totals stock.LedgerTotals
	err := db.do(ctx, "totals of "+saleID, func(g *gorm.DB) error {
		err := g.Model(&purchaseRow{}).Select("status, SUM(quantity) AS units, COUNT(*) AS count").
			Where("sale_id = ?", saleID).Group("status").Find(&sums).Error
		if err != nil {
			return err
		}
		var preloads []preloadRow
		if err := g.Where("sale_id = ?", saleID).Limit(1).Find(&preloads).Error; err != nil {
			return err
		}
		if len(preloads) > 0 {
			totals.Preloads = preloads[0].Times
		}
		if len(sums) > 0 {
			return nil
		}
		_, err = saleByID(g, saleID)
		return err
	})
	for _, sum := range sums {
		totals.Rows += sum.Count
		switch sum.Status {
		case stock.StatusPersisted, stock.StatusPaid:
			totals.Persisted += sum.Units
		case stock.StatusRejected:
			totals.Rejected += sum.Units
		case stock.StatusCancelled:
			totals.Cancelled += sum.Units
		}
	}
	return totals, err
}
