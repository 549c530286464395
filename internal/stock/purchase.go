package stock

import "time"

// Request is a buyer's wish, as it came in.
type Request struct {
	SaleID         string
	UserID         string
	Quantity       int64
	IdempotencyKey string // empty: this request is no repetition of another
}

// Receipt answers an accepted purchase. A repetition of the same request gets
// the same PurchaseID, Quantity, Remaining and Fence again.
type Receipt struct {
	PurchaseID string
	SaleID     string
	Quantity   int64
	Remaining  int64  // units left right after this purchase
	Fence      uint64 // 0 without a lock, or when the variant offers none
	Replayed   bool   // the purchase had been accepted before
	Variant    string // that guards the sale; set beside an error too, once the sale is known

	Locked   bool          // whether a lock was involved: the two durations mean something
	LockWait time.Duration // from asking for the lock to having it
	LockHold time.Duration // from having it to having released it; 0: it was not had
}

// Deduction is a purchase on its way into the counter.
type Deduction struct {
	PurchaseID string
	SaleID     string
	ItemID     string
	UserID     string
	Quantity   int64
	PriceCents int64
	Variant    string
	At         time.Time
}

// Result is the counter's verdict on one Deduction of a batch.
type Result struct {
	// Err is nil when the purchase is accepted (now or earlier), else one of
	// ErrSoldOut, ErrAlreadyBought (as *AlreadyBoughtError), ErrSaleNotStarted,
	// ErrSaleClosed, ErrOverLimit (as *OverLimitError), ErrKeyReused.
	Err       error
	Remaining int64
	Fence     uint64
	Replayed  bool // accepted earlier: Remaining and Fence are that answer's
}

// Event is what the outbox, Kafka and the syncer pass on. Its JSON form is a
// contract; see EventVersion.
type Event struct {
	Version    int       `json:"v"`
	Type       EventType `json:"type"`
	PurchaseID string    `json:"purchase_id"`
	SaleID     string    `json:"sale_id"`
	ItemID     string    `json:"item_id"`
	UserID     string    `json:"user_id"`
	Quantity   int64     `json:"quantity"`
	PriceCents int64     `json:"price_cents"`
	Fence      uint64    `json:"fence"`
	Variant    string    `json:"variant"`
	At         time.Time `json:"at"`
}

// EventVersion is the version that this code writes and reads.
const EventVersion = 1

// EventType tells what happened to the stock.
type EventType string

const (
	Deducted  EventType = "deducted"
	Cancelled EventType = "cancelled"
)

// Event is the fact that d was accepted under fence.
func (d Deduction) Event(fence uint64) Event {
	return Event{
		Version: EventVersion, Type: Deducted,
		PurchaseID: d.PurchaseID, SaleID: d.SaleID, ItemID: d.ItemID, UserID: d.UserID,
		Quantity: d.Quantity, PriceCents: d.PriceCents, Fence: fence, Variant: d.Variant, At: d.At,
	}
}

// Status is where a purchase stands.
type Status string

const (
	StatusPending   Status = "pending"   // accepted, not yet in the ledger
	StatusPersisted Status = "persisted" // in the ledger, the unit is the buyer's
	StatusRejected  Status = "rejected"  // in the ledger as refused: it had been oversold
	StatusCancelled Status = "cancelled"
	StatusPaid      Status = "paid"
)

// Purchase is an accepted purchase and what became of it.
type Purchase struct {
	PurchaseID  string
	SaleID      string
	UserID      string
	Quantity    int64
	PriceCents  int64
	Fence       uint64
	Status      Status
	Reason      string // why it was rejected: sold_out, already_bought
	CreatedAt   time.Time
	PersistedAt time.Time // zero while pending
}
