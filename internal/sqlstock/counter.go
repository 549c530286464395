package sqlstock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-sql-driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"flashsale/internal/stock"
	"flashsale/migrations"
)

// counter sells straight out of the ledger: one transaction takes the units and
// stores the purchase, so what is accepted is persisted, and there is no outbox.
//
// It needs no lock. Whatever a transaction has read may be out of date when it
// writes; its UPDATE says what must still be so, the unique keys say the rest,
// and who has been overtaken begins again, a bounded number of times.
type counter struct {
	*DB
	take takes
	lose func() bool // tells tests' answers to get lost, after the commit
}

// takes takes units off a sale in tx, which read it before, and returns what is
// left; errOvertaken if the sale is no longer as it has to be.
type takes func(tx *gorm.DB, read standingRow, open func(*gorm.DB) *gorm.DB, units int64) (left int64, err error)

var _ stock.Counter = (*counter)(nil)

// answerRow is what a purchase was answered, besides what its row says.
type answerRow struct {
	PurchaseID string `gorm:"primaryKey"`
	Remaining  int64
}

func (answerRow) TableName() string { return "answers" }

// fenceRow is the largest fence that a sale has seen.
type fenceRow struct {
	SaleID    string `gorm:"primaryKey"`
	LastFence int64
}

func (fenceRow) TableName() string { return "fences" }

// standingRow is a sale and what a counter wants to know with it.
type standingRow struct {
	Sale      saleRow `gorm:"embedded"`
	LastFence int64
	Accepted  int64
	Cancelled int64
	Now       time.Time
}

func (r standingRow) state() stock.State {
	return r.Sale.record().StateAt(r.Now, r.Sale.ClosedAt != nil)
}

// Preload is InsertSale: the sale is sellable as soon as the ledger has it.
func (c *counter) Preload(ctx context.Context, sale stock.Sale) error {
	return c.InsertSale(ctx, sale)
}

// Snapshot reads a sale in one statement, that is at one instant.
func (c *counter) Snapshot(ctx context.Context, saleID string) (snapshot stock.Snapshot, err error) {
	err = c.do(ctx, "snapshot of "+saleID, func(g *gorm.DB) error {
		row, err := c.standing(g, saleID, `,
			(SELECT COALESCE(SUM(quantity), 0) FROM purchases WHERE sale_id = sales.id) AS accepted,
			(SELECT COALESCE(SUM(quantity), 0) FROM purchases WHERE sale_id = sales.id AND status = 'cancelled') AS cancelled`)
		snapshot = stock.Snapshot{
			Sale: row.Sale.record().Sale, State: row.state(), Remaining: row.Sale.Remaining,
			Accepted: row.Accepted, Cancelled: row.Cancelled, LastFence: uint64(row.LastFence),
		}
		return err
	})
	return snapshot, err
}

// Deduct implements stock.Counter. It is stock.ErrBusy when others were faster
// every time.
func (c *counter) Deduct(ctx context.Context, fence uint64, batch []stock.Deduction) (results []stock.Result, err error) {
	if len(batch) == 0 {
		return nil, nil
	}
	saleID := batch[0].SaleID
	for _, d := range batch {
		if d.SaleID != saleID {
			return nil, fmt.Errorf("sqlstock: batch of two sales, %s and %s", saleID, d.SaleID)
		}
	}
	committing := false
	err = c.transact(ctx, "deduct from "+saleID, func(tx *gorm.DB) (err error) {
		committing = false
		results, err = c.deduct(tx, fence, saleID, batch)
		committing = err == nil
		return err
	})
	if err == nil && c.lose != nil && c.lose() {
		err = errors.New("answer lost")
	}
	if err != nil {
		return nil, deductError(err, committing)
	}
	return results, nil
}

// deductError gives the error of a Deduct its meaning. A server that says what
// is wrong with a commit has not committed; silence may mean anything.
func deductError(err error, committing bool) error {
	_, said := errors.AsType[*mysql.MySQLError](err)
	switch {
	case conflict(err):
		return fmt.Errorf("%w: %v", stock.ErrBusy, err)
	case committing && !said:
		return fmt.Errorf("%w: %v", stock.ErrOutcomeUnknown, err)
	case errors.Is(err, stock.ErrSaleNotFound), errors.Is(err, stock.ErrStale), errors.Is(err, stock.ErrUnavailable):
		return err
	default:
		return fmt.Errorf("%w: %w", stock.ErrUnavailable, err)
	}
}

func (c *counter) deduct(tx *gorm.DB, fence uint64, saleID string, batch []stock.Deduction) ([]stock.Result, error) {
	read := tx
	if fence > 0 { // holders of a lock go one after the other
		read = tx.Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate})
	}
	sale, err := c.standing(read, saleID, "")
	if err != nil {
		return nil, err
	}
	standing := stock.Standing{State: sale.state(), Limit: sale.Sale.PerUserLimit, Remaining: sale.Sale.Remaining}
	// The buyers first: a purchase that appears in between is known then, and not
	// taken for another one of the same user.
	if standing.Buyers, err = buyersOf(tx, saleID, batch); err != nil {
		return nil, err
	}
	if standing.Known, err = knownAnswers(tx, batch); err != nil {
		return nil, err
	}
	if err := advanceFence(tx, sale, fence, standing.Known, batch); err != nil {
		return nil, err
	}
	results := standing.Decide(fence, batch)
	return results, c.store(tx, sale, fence, batch, results)
}

// store takes the units of what is accepted and inserts its rows, under the lock
// that the UPDATE has left on the sale's row.
func (c *counter) store(tx *gorm.DB, sale standingRow, fence uint64, batch []stock.Deduction, results []stock.Result) error {
	var units int64
	var accepted []int
	for i, result := range results {
		if result.Err == nil && !result.Replayed {
			accepted = append(accepted, i)
			units += batch[i].Quantity
		}
	}
	if len(accepted) == 0 {
		return nil
	}
	open := func(g *gorm.DB) *gorm.DB {
		return g.Where("id = ? AND closed_at IS NULL", sale.Sale.ID).
			Where("(starts_at IS NULL OR starts_at <= ?) AND (ends_at IS NULL OR ends_at > ?)", c.clock(), c.clock())
	}
	left, err := c.take(tx, sale, open, units)
	if err != nil {
		return err
	}
	left += units
	stood := map[string]int64{} // what each of them left
	var rows []purchaseRow
	var answers []answerRow
	for _, i := range accepted {
		d := batch[i]
		left -= d.Quantity
		results[i].Remaining, stood[d.PurchaseID] = left, left
		rows = append(rows, newPurchaseRow(d.Event(fence), stock.Ruling{Verdict: stock.VerdictPersisted}, c.options.Now()))
		answers = append(answers, answerRow{d.PurchaseID, left})
	}
	for i, result := range results {
		if left, ok := stood[batch[i].PurchaseID]; ok && result.Replayed { // twice in this batch
			results[i].Remaining = left
		}
	}
	if err := insertPurchases(tx, rows); err != nil {
		if errors.Is(err, errTaken) { // since it was looked for
			err = fmt.Errorf("%w: %w", errOvertaken, err)
		}
		return err
	}
	return tx.CreateInBatches(answers, sqliteChunk).Error
}

// advanceFence refuses a fence that is smaller than one the sale has seen, unless
// nothing is going to be written for it, and remembers it otherwise.
func advanceFence(tx *gorm.DB, sale standingRow, fence uint64, known map[string]stock.Answer, batch []stock.Deduction) error {
	last := uint64(sale.LastFence)
	if fence > last {
		return tx.Clauses(clause.OnConflict{UpdateAll: true}).Create(&fenceRow{sale.Sale.ID, int64(fence)}).Error
	}
	if fence == 0 || fence == last {
		return nil
	}
	for _, d := range batch {
		if _, ok := known[d.PurchaseID]; !ok {
			return fmt.Errorf("%w: %s", stock.ErrStale, sale.Sale.ID)
		}
	}
	return nil
}

// standing reads a sale, the time by the database's clock, and more columns.
func (c *counter) standing(g *gorm.DB, saleID, more string) (standingRow, error) {
	var rows []standingRow
	now := ""
	if c.dialect == migrations.MySQL {
		now = ", UTC_TIMESTAMP(6) AS now"
	}
	err := g.Table("sales").Select("sales.*, COALESCE((SELECT last_fence FROM fences WHERE sale_id = sales.id), 0) AS last_fence"+now+more).
		Where("id = ?", saleID).Find(&rows).Error
	if err == nil && len(rows) == 0 {
		err = stock.ErrSaleNotFound
	}
	if err != nil {
		return standingRow{}, err
	}
	if now == "" { // SQLite is a part of this process, its clock is ours
		rows[0].Now = c.options.Now()
	}
	return rows[0], nil
}

// clock is the same clock, within a statement.
func (c *counter) clock() clause.Expr {
	if c.dialect == migrations.MySQL {
		return gorm.Expr("UTC_TIMESTAMP(6)")
	}
	return gorm.Expr("?", stored(c.options.Now()))
}

// knownAnswers are the answers of those of the batch that were accepted before.
func knownAnswers(tx *gorm.DB, batch []stock.Deduction) (map[string]stock.Answer, error) {
	ids := make([]string, len(batch))
	for i, d := range batch {
		ids[i] = d.PurchaseID
	}
	var rows []struct {
		PurchaseID                 string
		Quantity, Fence, Remaining int64
	}
	err := tx.Table("purchases").Select("purchases.purchase_id, quantity, fence, COALESCE(answers.remaining, 0) AS remaining").
		Joins("LEFT JOIN answers ON answers.purchase_id = purchases.purchase_id").
		Where("purchases.purchase_id IN ?", ids).Find(&rows).Error
	known := map[string]stock.Answer{}
	for _, row := range rows {
		known[row.PurchaseID] = stock.Answer{Quantity: row.Quantity, Remaining: row.Remaining, Fence: uint64(row.Fence)}
	}
	return known, err
}

// buyersOf are the live purchases of the batch's users.
func buyersOf(tx *gorm.DB, saleID string, batch []stock.Deduction) (map[string]string, error) {
	users := make([]string, len(batch))
	for i, d := range batch {
		users[i] = d.UserID
	}
	var rows []purchaseRow
	err := tx.Select("user_id", "purchase_id").Where("sale_id = ? AND user_id IN ? AND live = 1", saleID, users).Find(&rows).Error
	buyers := map[string]string{}
	for _, row := range rows {
		buyers[row.UserID] = row.PurchaseID
	}
	return buyers, err
}
