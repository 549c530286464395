package sqlstock

import (
	"math"
	"time"

	"flashsale/internal/stock"
)

// saleRow is a row of sales. Times are UTC, in microseconds, NULL when unset.
type saleRow struct {
	ID           string `gorm:"primaryKey"`
	ItemID       string
	Title        string
	PriceCents   int64
	Stock        int64
	Remaining    int64
	PerUserLimit int64
	Variant      string
	Fencing      bool
	WorkMinUS    int64
	WorkMaxUS    int64
	StartsAt     *time.Time
	EndsAt       *time.Time
	ClosedAt     *time.Time
}

func (saleRow) TableName() string { return "sales" }

func newSaleRow(s stock.Sale) saleRow {
	s = storedTerms(s)
	return saleRow{
		ID: s.ID, ItemID: s.ItemID, Title: s.Title, PriceCents: s.PriceCents,
		Stock: s.Stock, Remaining: s.Stock, PerUserLimit: s.PerUserLimit,
		Variant: s.Variant, Fencing: s.Fencing,
		WorkMinUS: s.Work.Min.Microseconds(), WorkMaxUS: s.Work.Max.Microseconds(),
		StartsAt: nullable(s.StartsAt), EndsAt: nullable(s.EndsAt),
	}
}

func (r saleRow) record() stock.SaleRecord {
	return stock.SaleRecord{
		Sale: stock.Sale{
			ID: r.ID, ItemID: r.ItemID, Title: r.Title, PriceCents: r.PriceCents,
			Stock: r.Stock, PerUserLimit: r.PerUserLimit,
			Variant: r.Variant, Fencing: r.Fencing,
			StartsAt: timeOf(r.StartsAt), EndsAt: timeOf(r.EndsAt),
			Work: stock.WorkRange{
				Min: time.Duration(r.WorkMinUS) * time.Microsecond,
				Max: time.Duration(r.WorkMaxUS) * time.Microsecond,
			},
		},
		Remaining: r.Remaining,
		ClosedAt:  timeOf(r.ClosedAt),
	}
}

// storedTerms is the sale as it comes back: in whole microseconds.
func storedTerms(s stock.Sale) stock.Sale {
	s.StartsAt, s.EndsAt = stored(s.StartsAt), stored(s.EndsAt)
	s.Work.Min = s.Work.Min.Truncate(time.Microsecond)
	s.Work.Max = s.Work.Max.Truncate(time.Microsecond)
	return s
}

// preloadRow counts how often a sale was put into the counter; a sale that
// wasn't has none.
type preloadRow struct {
	SaleID string `gorm:"primaryKey"`
	Times  int64
}

func (preloadRow) TableName() string { return "preloads" }

// purchaseRow is a row of purchases. Live is 1 for a purchase that stands and
// NULL for any other, so that the unique key (sale_id, user_id, live) allows a
// user one of the former and any number of the latter.
type purchaseRow struct {
	PurchaseID  string `gorm:"primaryKey"`
	SaleID      string
	UserID      string
	Quantity    int64
	PriceCents  int64
	Fence       int64
	Status      stock.Status
	Reason      string
	Live        *int8
	CreatedAt   time.Time `gorm:"autoCreateTime:false"`
	PersistedAt time.Time
}

func (purchaseRow) TableName() string { return "purchases" }

func newPurchaseRow(e stock.Event, r stock.Ruling, now time.Time) purchaseRow {
	row := purchaseRow{
		PurchaseID: e.PurchaseID, SaleID: e.SaleID, UserID: e.UserID,
		Quantity: e.Quantity, PriceCents: e.PriceCents, Fence: int64(e.Fence),
		Status: stock.StatusRejected, Reason: r.Reason,
		CreatedAt: stored(e.At), PersistedAt: stored(now),
	}
	if r.Verdict == stock.VerdictPersisted {
		row.Status, row.Live = stock.StatusPersisted, new(int8)
		*row.Live = 1
	}
	return row
}

func (r purchaseRow) purchase() stock.Purchase {
	return stock.Purchase{
		PurchaseID: r.PurchaseID, SaleID: r.SaleID, UserID: r.UserID,
		Quantity: r.Quantity, PriceCents: r.PriceCents, Fence: uint64(r.Fence),
		Status: r.Status, Reason: r.Reason,
		CreatedAt: r.CreatedAt.UTC(), PersistedAt: r.PersistedAt.UTC(),
	}
}

// unstorable says what keeps an event from being a row, empty if nothing does.
// It is asked before the database, whose refusal would look like a fault that
// may pass.
func unstorable(e stock.Event) string {
	sale, ok := stock.SaleOf(e.PurchaseID)
	switch {
	case e.Type != stock.Deducted:
		return "type"
	case !ok || sale != e.SaleID:
		return "purchase_id"
	case !stock.ValidUserID(e.UserID):
		return "user_id"
	case e.Quantity < 1:
		return "quantity"
	case e.Fence > math.MaxInt64:
		return "fence"
	case e.At.Year() < 1000 || e.At.Year() > 9999:
		return "at"
	}
	return ""
}

func stored(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC().Truncate(time.Microsecond)
}

func nullable(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func timeOf(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}
