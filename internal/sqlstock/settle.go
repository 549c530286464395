package sqlstock

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"flashsale/internal/stock"
)

// chunk bounds the values of an IN, so that a batch of any size is a statement
// that the server takes. SQLite's driver needs time with the square of the
// values in a statement: small ones are much faster.
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
	settle := func(look bool) error {
		return db.transact(ctx, "settle", func(tx *gorm.DB) (err error) {
			verdicts, err = settle(tx, events, look, db.options.Now())
			return err
		})
	}
	err := settle(false)
	if errors.Is(err, errTaken) {
		err = settle(true)
	}
	if err != nil {
		return nil, err
	}
	return verdicts, nil
}

// settle judges and writes a batch under the locks of its sales.
//
// Nearly always every purchase is new and there is a unit for it. So that is
// taken for granted, unless look is set, and the INSERT is what finds out: it
// succeeds only if no purchase has a row and no buyer a live one, which is all
// that looking could have told. If it fails the answer is errTaken. A batch of
// which a part would be rejected is looked for at once, since a rejected row
// collides with nothing, and why it is rejected may depend on what is there.
func settle(tx *gorm.DB, events []stock.Event, look bool, now time.Time) ([]stock.Verdict, error) {
	bySale := map[string][]int{} // sale ID -> indexes in events
	for i, e := range events {
		bySale[e.SaleID] = append(bySale[e.SaleID], i)
	}
	sales := slices.Sorted(maps.Keys(bySale))
	remaining, err := lockSales(tx, sales)
	if err != nil {
		return nil, err
	}
	b := batch{events: events, sales: sales, bySale: bySale, remaining: remaining, now: now}
	j := b.judge(known{})
	if look || j.rejected {
		known, err := b.look(tx)
		if err != nil {
			return nil, err
		}
		j = b.judge(known)
		look = true
	}
	if err := insertPurchases(tx, j.rows); err != nil {
		if look && errors.Is(err, errTaken) {
			// Under the sale's lock what was looked for can't change; if it has,
			// somebody has inserted without the lock: judge anew.
			err = fmt.Errorf("%w: %w", errOvertaken, err)
		}
		return nil, err
	}
	for i, saleID := range sales {
		if err := subtract(tx, saleID, j.units[i]); err != nil {
			return nil, err
		}
	}
	return j.verdicts, nil
}

// batch is events whose sales are locked.
type batch struct {
	events    []stock.Event
	sales     []string // in ID order
	bySale    map[string][]int
	remaining map[string]int64 // of those sales that there are
	now       time.Time
}

// known is what the ledger has of a batch: purchase IDs with a row, and by sale
// the users with a live purchase.
type known struct {
	purchases map[string]bool
	buyers    map[string]map[string]bool
}

// judged is what is to be written, and answered once it is.
type judged struct {
	verdicts []stock.Verdict // in the events' order
	rows     []purchaseRow
	units    []int64 // to take off each sale
	rejected bool    // some rows are
}

func (b batch) judge(known known) judged {
	j := judged{verdicts: make([]stock.Verdict, len(b.events)), rows: make([]purchaseRow, 0, len(b.events)), units: make([]int64, len(b.sales))}
	for n, saleID := range b.sales {
		left, ok := b.remaining[saleID]
		if !ok {
			for _, i := range b.bySale[saleID] {
				j.verdicts[i] = stock.VerdictUnknownSale
			}
			continue
		}
		events := b.of(saleID)
		settlement := stock.Settle(left, known.purchases, known.buyers[saleID], events)
		j.units[n] = settlement.Subtract
		for k, ruling := range settlement.Rulings {
			j.verdicts[b.bySale[saleID][k]] = ruling.Verdict
			j.rejected = j.rejected || ruling.Verdict == stock.VerdictRejected
			if ruling.Verdict != stock.VerdictKnown {
				j.rows = append(j.rows, newPurchaseRow(events[k], ruling, b.now))
			}
		}
	}
	return j
}

// of is the events of one sale, in order.
func (b batch) of(saleID string) []stock.Event {
	events := make([]stock.Event, len(b.bySale[saleID]))
	for k, i := range b.bySale[saleID] {
		events[k] = b.events[i]
	}
	return events
}

func (b batch) look(tx *gorm.DB) (known, error) {
	purchases, err := knownPurchases(tx, b.events)
	if err != nil {
		return known{}, err
	}
	buyers := map[string]map[string]bool{}
	for saleID := range b.remaining {
		if buyers[saleID], err = liveBuyers(tx, saleID, b.of(saleID)); err != nil {
			return known{}, err
		}
	}
	return known{purchases, buyers}, nil
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
