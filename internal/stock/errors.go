package stock

import (
	"errors"
	"fmt"
)

// What can become of a purchase other than being accepted. Each maps to one
// code of the HTTP interface; the first group is the sale's answer, the second
// says that there is none. Only ErrOutcomeUnknown leaves open whether stock was
// deducted: repeating the request with the same idempotency key settles it.
var (
	ErrSoldOut        = errors.New("stock: sold out")
	ErrAlreadyBought  = errors.New("stock: already bought")
	ErrOverLimit      = errors.New("stock: quantity above the limit per user")
	ErrKeyReused      = errors.New("stock: idempotency key used for another quantity")
	ErrNotOnSale      = errors.New("stock: not on sale")
	ErrSaleNotStarted = fmt.Errorf("%w: not started", ErrNotOnSale)
	ErrSaleClosed     = fmt.Errorf("%w: closed", ErrNotOnSale)

	ErrBusy           = errors.New("stock: busy")            // lock contention, nothing deducted
	ErrStale          = errors.New("stock: stale fence")     // a newer holder has been here, nothing deducted
	ErrUnavailable    = errors.New("stock: unavailable")     // a store is away, nothing deducted
	ErrOutcomeUnknown = errors.New("stock: outcome unknown") // the answer was lost on its way

	ErrSaleNotFound     = errors.New("stock: no such sale")
	ErrPurchaseNotFound = errors.New("stock: no such purchase")
	ErrSaleExists       = errors.New("stock: sale exists with other terms")

	// ErrSaleBegun is a sale that has sold units and that the counter has lost.
	// Putting its whole stock there again would sell them twice.
	ErrSaleBegun = errors.New("stock: the sale has sold units and is missing in Redis; loading its whole stock would sell them twice" +
		" (its purchases in SQL stand; the units that are left can be sold in a sale of another ID)")

	// ErrSaleLost is a sale that the counter had, and has lost, and of which the
	// ledger has no purchase, or not yet.
	ErrSaleLost = errors.New("stock: the sale was loaded before and is missing in Redis; what it sold may not have reached SQL, and loading its whole stock would sell it twice" +
		" (if it has sold nothing, `flashsale preload --again` loads it; else the units that are left can be sold in a sale of another ID)")
)

// AlreadyBoughtError is ErrAlreadyBought with the purchase that stands.
type AlreadyBoughtError struct{ PurchaseID string }

func (e *AlreadyBoughtError) Error() string { return ErrAlreadyBought.Error() + ": " + e.PurchaseID }
func (e *AlreadyBoughtError) Unwrap() error { return ErrAlreadyBought }

// OverLimitError is ErrOverLimit with the limit, in units.
type OverLimitError struct{ Limit int64 }

func (e *OverLimitError) Error() string { return fmt.Sprintf("%v of %d", ErrOverLimit, e.Limit) }
func (e *OverLimitError) Unwrap() error { return ErrOverLimit }

// NotOfferedError is ErrUnavailable for a sale of a variant that this Seller
// lacks, though another one may have it.
type NotOfferedError struct{ Variant string }

func (e *NotOfferedError) Error() string {
	return fmt.Sprintf("%v: variant %q is not offered here", ErrUnavailable, e.Variant)
}
func (e *NotOfferedError) Unwrap() error { return ErrUnavailable }

// InvalidError lists everything that is wrong with an input, not just the first.
type InvalidError struct{ Fields []FieldError }

// FieldError is one wrong value.
type FieldError struct {
	Field   string `json:"field"`
	Reason  string `json:"reason"`
	Allowed string `json:"allowed"`
}

func (e *InvalidError) Error() string {
	text := "stock: invalid"
	for i, f := range e.Fields {
		sep := ", "
		if i == 0 {
			sep = ": "
		}
		text += sep + f.Field + " " + f.Reason
	}
	return text
}
