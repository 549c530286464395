package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"flashsale/internal/stock"

	"github.com/gin-gonic/gin"
	"golang.org/x/sync/errgroup"
)

type saleBody struct {
	ID           string      `json:"id"`
	ItemID       string      `json:"item_id"`
	Title        string      `json:"title"`
	PriceCents   int64       `json:"price_cents"`
	Stock        int64       `json:"stock"`
	Remaining    *int64      `json:"remaining"` // null: not loaded into Redis
	Accepted     *int64      `json:"accepted"`  // null: not loaded into Redis
	Variant      string      `json:"variant"`
	PerUserLimit int64       `json:"per_user_limit"`
	Fencing      toggle      `json:"fencing"`
	State        stock.State `json:"state"`
	StartsAt     *time.Time  `json:"starts_at,omitempty"`
	EndsAt       *time.Time  `json:"ends_at,omitempty"`
	Work         *workBody   `json:"work_ms,omitempty"`
}

// toggle is a yes or no that the interface spells as a word.
type toggle string

const on, off toggle = "on", "off"

func toggleOf(yes bool) toggle {
	if yes {
		return on
	}
	return off
}

type workBody struct {
	Min int64 `json:"min"`
	Max int64 `json:"max"`
}

type salesBody struct {
	Sales []saleBody `json:"sales"`
	Next  string     `json:"next,omitempty"` // the after of the next page; absent on the last one
}

func saleFrom(in values) stock.Sale {
	sale := stock.Sale{
		ID: in.text("id"), ItemID: in.text("item_id"), Title: in.text("title"),
		PriceCents: in.integer("price_cents"), Stock: in.integer("stock"), PerUserLimit: in.integer("per_user_limit"),
		Variant: in.text("variant"), Fencing: in.truth("fencing", true),
		StartsAt: in.instant("starts_at"), EndsAt: in.instant("ends_at"),
		Work: stock.WorkRange{
			Min: time.Duration(in.object("work_ms").integer("min")) * time.Millisecond,
			Max: time.Duration(in.object("work_ms").integer("max")) * time.Millisecond,
		},
	}
	if !in.has("id") {
		sale.ID = sale.ItemID
	}
	return sale
}

// checkSale adds what the domain has against the sale. What p complains about
// already it doesn't repeat, and an ID that was taken from a wrong item_id is
// not to blame.
func checkSale(in input, p *problems) {
	invalid, ok := errors.AsType[*stock.InvalidError](saleFrom(in.body).Validate())
	if !ok {
		return
	}
	for _, f := range invalid.Fields {
		if f.Field != "id" || in.body.has("id") {
			p.add(f.Field, f.Reason, f.Allowed)
		}
	}
}

// createSale writes to the ledger first: a sale that sells but isn't recorded
// would have all its purchases buried. The same request again completes a
// creation that ended in between; the counter refuses a sale that it has lost.
func (a *api) createSale(c *gin.Context, in input) error {
	ctx, sale := c.Request.Context(), saleFrom(in.body)
	if err := a.Ledger.InsertSale(ctx, sale); err != nil {
		return err
	}
	if err := a.Counter.Preload(ctx, sale); err != nil {
		return err
	}
	c.Header("Location", "/v1/sales/"+sale.ID)
	return a.replySale(c, http.StatusCreated, sale.ID)
}

func (a *api) getSale(c *gin.Context, in input) error {
	return a.replySale(c, http.StatusOK, in.id)
}

// closeSale stops the selling first.
func (a *api) closeSale(c *gin.Context, in input) error {
	ctx := c.Request.Context()
	if err := a.Desk.Close(ctx, in.id); err != nil {
		return a.explainNotFound(ctx, in.id, err)
	}
	if err := a.Ledger.CloseSale(ctx, in.id, a.Now().UTC().Truncate(time.Microsecond)); err != nil {
		return err
	}
	return a.replySale(c, http.StatusOK, in.id)
}

func (a *api) replySale(c *gin.Context, status int, saleID string) error {
	ctx := c.Request.Context()
	snapshot, err := a.Counter.Snapshot(ctx, saleID)
	if err != nil {
		return a.explainNotFound(ctx, saleID, err)
	}
	return reply(c, status, bodyOf(snapshot))
}

func (a *api) listSales(c *gin.Context, in input) error {
	limit := int64(pageSize)
	if in.query.has("limit") {
		limit = in.query.integer("limit")
	}
	ctx := c.Request.Context()
	records, err := a.Ledger.Sales(ctx, in.query.text("after"), int(limit)+1)
	if err != nil {
		return err
	}
	body := salesBody{Sales: []saleBody{}}
	if int64(len(records)) > limit {
		records = records[:limit]
		body.Next = records[limit-1].ID
	}
	body.Sales = make([]saleBody, len(records))
	var group errgroup.Group
	group.SetLimit(8)
	for i, record := range records {
		group.Go(func() (err error) {
			body.Sales[i], err = a.listed(ctx, record)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return reply(c, http.StatusOK, body)
}

// listed is a sale of the ledger with what the counter knows of it, if anything.
func (a *api) listed(ctx context.Context, record stock.SaleRecord) (saleBody, error) {
	snapshot, err := a.Counter.Snapshot(ctx, record.ID)
	if err == nil {
		return bodyOf(snapshot), nil
	}
	if !errors.Is(err, stock.ErrSaleNotFound) {
		return saleBody{}, err
	}
	body := termsOf(record.Sale)
	body.State = record.StateAt(a.Now(), !record.ClosedAt.IsZero())
	return body, nil
}

// explainNotFound turns "the counter hasn't got it" into "it doesn't exist" only
// when the ledger hasn't got it either: a sale that was lost from Redis or is
// not loaded yet is unavailable, and a buyer who reads "not found" goes home.
func (a *api) explainNotFound(ctx context.Context, saleID string, err error) error {
	if !errors.Is(err, stock.ErrSaleNotFound) {
		return err
	}
	switch _, ledgerErr := a.Ledger.Sale(ctx, saleID); {
	case ledgerErr == nil:
		return detailed(fmt.Errorf("%w: sale %s is in the ledger, not in the counter", stock.ErrUnavailable, saleID),
			"The sale is recorded but not loaded for selling. Nothing was deducted.")
	case errors.Is(ledgerErr, stock.ErrSaleNotFound):
		return err
	default:
		return detailed(fmt.Errorf("%w: is there a sale %s? %w", stock.ErrUnavailable, saleID, ledgerErr),
			"The sale is not loaded for selling, and the ledger cannot be asked about it. Nothing was deducted.")
	}
}

func bodyOf(s stock.Snapshot) saleBody {
	body := termsOf(s.Sale)
	body.Remaining, body.Accepted, body.State = &s.Remaining, &s.Accepted, s.State
	return body
}

func termsOf(s stock.Sale) saleBody {
	body := saleBody{
		ID: s.ID, ItemID: s.ItemID, Title: s.Title, PriceCents: s.PriceCents, Stock: s.Stock,
		Variant: s.Variant, PerUserLimit: s.PerUserLimit, Fencing: toggleOf(s.Fencing),
		StartsAt: optional(s.StartsAt), EndsAt: optional(s.EndsAt),
	}
	if s.Work != (stock.WorkRange{}) {
		body.Work = &workBody{Min: s.Work.Min.Milliseconds(), Max: s.Work.Max.Milliseconds()}
	}
	return body
}

func optional(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
