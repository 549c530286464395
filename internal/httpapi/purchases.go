package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"flashsale/internal/stock"

	"github.com/gin-gonic/gin"
)

type receiptBody struct {
	PurchaseID string `json:"purchase_id"`
	SaleID     string `json:"sale_id"`
	Quantity   int64  `json:"quantity"`
	Remaining  int64  `json:"remaining"`
	Fence      uint64 `json:"fence"`
}

type purchaseBody struct {
	PurchaseID  string       `json:"purchase_id"`
	SaleID      string       `json:"sale_id"`
	UserID      string       `json:"user_id"`
	Quantity    int64        `json:"quantity"`
	PriceCents  int64        `json:"price_cents"`
	Fence       uint64       `json:"fence"`
	Status      stock.Status `json:"status"`
	Reason      string       `json:"reason,omitempty"` // why it was rejected
	CreatedAt   time.Time    `json:"created_at"`
	PersistedAt *time.Time   `json:"persisted_at,omitempty"`
}

type purchasesBody struct {
	Purchases []purchaseBody `json:"purchases"`
}

// purchase passes the request's context on as it is. Who hangs up while waiting
// for the lock leaves the queue, who hangs up before the deduction is sent has
// bought nothing. A script that has been sent is one step and runs whatever the
// client does, and the lock is released on a context of its own: no client can
// stop a purchase halfway, or leave the lock behind.
func (a *api) purchase(c *gin.Context, in input) error {
	ctx := c.Request.Context()
	receipt, err := a.Seller.Purchase(ctx, stock.Request{
		SaleID: in.id, UserID: in.body.text("user_id"), Quantity: in.body.integer("quantity"),
		IdempotencyKey: in.header.text("Idempotency-Key"),
	})
	if receipt.Locked {
		c.Header("Server-Timing", serverTiming(receipt))
	}
	if err != nil {
		return a.explainNotOffered(a.explainNotFound(ctx, in.id, err))
	}
	c.Header("Location", "/v1/purchases/"+receipt.PurchaseID)
	c.Writer.Header()["X-Outcome"] = acceptedOutcome
	body := receiptBody{
		PurchaseID: receipt.PurchaseID, SaleID: receipt.SaleID, Quantity: receipt.Quantity,
		Remaining: receipt.Remaining, Fence: receipt.Fence,
	}
	send(c, http.StatusCreated, "application/json", append(body.appendJSON(make([]byte, 0, 256)), '\n'))
	return nil
}

var acceptedOutcome = []string{Outcome(nil)}

// appendJSON appends what encoding/json would write.
func (r receiptBody) appendJSON(to []byte) []byte {
	to = stock.AppendText(append(to, `{"purchase_id":`...), r.PurchaseID)
	to = stock.AppendText(append(to, `,"sale_id":`...), r.SaleID)
	to = strconv.AppendInt(append(to, `,"quantity":`...), r.Quantity, 10)
	to = strconv.AppendInt(append(to, `,"remaining":`...), r.Remaining, 10)
	to = strconv.AppendUint(append(to, `,"fence":`...), r.Fence, 10)
	return append(to, '}')
}

// explainNotOffered says what this API lacks: no store is away, and waiting
// would not help.
func (a *api) explainNotOffered(err error) error {
	lacks, ok := errors.AsType[*stock.NotOfferedError](err)
	if !ok {
		return err
	}
	detail := "This API does not offer the sale's variant " + lacks.Variant
	if what := a.Lacking[lacks.Variant]; what != "" {
		detail += ": it " + what
	}
	return detailed(err, detail+". Another API may offer it. Nothing was deducted.")
}

func serverTiming(r stock.Receipt) string {
	ms := func(d time.Duration) string {
		return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', 3, 64)
	}
	timing := "lock_wait;dur=" + ms(r.LockWait)
	if r.LockHold > 0 {
		timing += ", lock_hold;dur=" + ms(r.LockHold)
	}
	return timing
}

// getPurchase asks the ledger first: what stands there is the purchase's last
// word. Not there, it may be on its way, which the counter knows.
func (a *api) getPurchase(c *gin.Context, in input) error {
	ctx := c.Request.Context()
	p, err := a.Ledger.Purchase(ctx, in.id)
	if errors.Is(err, stock.ErrPurchaseNotFound) {
		p, err = a.Desk.Purchase(ctx, in.id)
	}
	if err != nil {
		return err
	}
	return reply(c, http.StatusOK, purchaseFrom(p))
}

// buyerDesk finds a user's purchase before the ledger has it.
type buyerDesk interface {
	// PurchaseOf is the live purchase of a user in a sale, ErrPurchaseNotFound
	// if there is none, ErrSaleNotFound without the sale.
	PurchaseOf(ctx context.Context, saleID, userID string) (stock.Purchase, error)
}

func (a *api) listPurchases(c *gin.Context, in input) error {
	ctx, userID := c.Request.Context(), in.query.text("user_id")
	purchases, err := a.Ledger.PurchasesOf(ctx, in.id, userID)
	if err != nil {
		return err
	}
	if desk, ok := a.Desk.(buyerDesk); ok {
		p, err := desk.PurchaseOf(ctx, in.id, userID)
		switch {
		case err == nil && !contains(purchases, p.PurchaseID):
			purchases = append(purchases, p)
		case err != nil && !errors.Is(err, stock.ErrPurchaseNotFound) && !errors.Is(err, stock.ErrSaleNotFound):
			return err
		}
	}
	if len(purchases) == 0 { // is there such a sale at all?
		if _, err := a.Ledger.Sale(ctx, in.id); err != nil {
			return err
		}
	}
	body := purchasesBody{Purchases: make([]purchaseBody, len(purchases))}
	for i, p := range purchases {
		body.Purchases[i] = purchaseFrom(p)
	}
	return reply(c, http.StatusOK, body)
}

func contains(purchases []stock.Purchase, id string) bool {
	for _, p := range purchases {
		if p.PurchaseID == id {
			return true
		}
	}
	return false
}

func purchaseFrom(p stock.Purchase) purchaseBody {
	return purchaseBody{
		PurchaseID: p.PurchaseID, SaleID: p.SaleID, UserID: p.UserID, Quantity: p.Quantity, PriceCents: p.PriceCents,
		Fence: p.Fence, Status: p.Status, Reason: p.Reason, CreatedAt: p.CreatedAt.UTC(), PersistedAt: optional(p.PersistedAt),
	}
}
