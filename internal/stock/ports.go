package stock

import (
	"context"
	"fmt"
	"time"

	"flashsale/internal/lock"
)

// The ports: what the domain and its processes need of the outside. Adapters
// implement them, in packages that do not import one another; stocktest holds
// in-memory ones and the suites that every implementation passes.

// Counter keeps the stock of running sales. Whether concurrent Deducts of a
// sale are safe without a lock is the implementation's to say.
type Counter interface {
	// Preload makes a sale sellable. Repeating it with the same terms changes
	// nothing, whatever was sold since; with others it is ErrSaleExists.
	Preload(ctx context.Context, sale Sale) error

	// Snapshot reads a sale, ErrSaleNotFound if the counter hasn't got it.
	Snapshot(ctx context.Context, saleID string) (Snapshot, error)

	// Deduct decides on a batch of one sale, in order, and appends what it
	// accepted to the outbox in the same step. Results are in the batch's
	// order. An error is about the batch as a whole: ErrStale, ErrUnavailable,
	// ErrSaleNotFound (nothing deducted) or ErrOutcomeUnknown. A purchase ID
	// that it knows is answered as the first time, under a stale fence too
	// when the whole batch is known. Fence 0 is not checked.
	Deduct(ctx context.Context, fence uint64, batch []Deduction) ([]Result, error)
}

// Fusing is a Counter whose first read can go along with the grant of the lock
// around it, and its last write with the release.
type Fusing interface {
	Counter

	// First is the read of DeductAndLeave for this batch under a fence, as the
	// first step of the holder; see lock.AcquireThen. Without it, or if it has
	// not run, DeductAndLeave reads by itself.
	First(batch []Deduction) (lock.Step, error)

	// DeductAndLeave is Deduct under the fence given, which is the lease's or 0. If
	// it writes, and the lease can do that, the write and the release are one
	// exchange. The caller releases the lease even so, as ever.
	DeductAndLeave(ctx context.Context, lease lock.Lease, fence uint64, batch []Deduction) ([]Result, error)
}

// Desk is what the counter can do besides selling.
type Desk interface {
	// Close ends a sale; repeating it changes nothing.
	Close(ctx context.Context, saleID string) error

	// Purchase finds an accepted purchase, ErrPurchaseNotFound otherwise. Its
	// status is StatusPending: what became of it the ledger knows.
	Purchase(ctx context.Context, purchaseID string) (Purchase, error)

	// EachPurchase calls fn for every purchase accepted in a sale, in no
	// order, at least once each for those accepted before the call.
	EachPurchase(ctx context.Context, saleID string, fn func(Purchase) error) error
}

// OutboxEntry is one entry of an outbox shard: the events of one script call.
type OutboxEntry struct {
	ID     string
	Events [][]byte // each the JSON of an Event; when the entry can't be split, its raw bytes as one element
}

// Outbox holds what was deducted and not yet published, a stream a shard.
type Outbox interface {
	// Read returns at most count entries after the given ID ("" = the first
	// one there is), waiting up to block for one. No entry is no error.
	Read(ctx context.Context, shard int, after string, count int, block time.Duration) ([]OutboxEntry, error)

	// Delete removes exactly these entries.
	Delete(ctx context.Context, shard int, ids []string) error

	// Depth is the number of entries, and the time of the oldest (zero: none).
	Depth(ctx context.Context, shard int) (entries int64, oldest time.Time, err error)
}

// Message is an Event on its way through Kafka.
type Message struct {
	Key       string // the sale's ID, so that a sale's events stay in order
	Value     []byte
	Partition int   // when fetched
	Offset    int64 // when fetched
}

// Publisher hands messages to Kafka.
type Publisher interface {
	// Publish returns nil once every message is acknowledged by all in-sync
	// replicas. After an error any of them may have been published. Messages
	// of one key keep their order.
	Publish(ctx context.Context, messages []Message) error
}

// Source fetches messages as a member of the syncer's group.
type Source interface {
	// Fetch waits for one message, then takes what else is there, up to max
	// messages or for linger.
	Fetch(ctx context.Context, max int, linger time.Duration) ([]Message, error)

	// Commit says that messages and all before them are done with.
	Commit(ctx context.Context, messages []Message) error

	// Bury stores a message that can never be processed in the dead letter
	// topic and returns once that is acknowledged.
	Bury(ctx context.Context, message Message, reason string) error
}

// Ledger is the record that counts: the SQL database.
type Ledger interface {
	// InsertSale records a sale. Repeating it with the same terms changes
	// nothing; with others it is ErrSaleExists.
	InsertSale(ctx context.Context, sale Sale) error

	Sale(ctx context.Context, saleID string) (SaleRecord, error)

	// Sales lists at most limit sales with an ID after the given one, by ID.
	Sales(ctx context.Context, after string, limit int) ([]SaleRecord, error)

	CloseSale(ctx context.Context, saleID string, at time.Time) error

	// NotePreload records that a sale's stock was put into the counter; repeating
	// it changes nothing. With again it is put there once more, since the counter
	// has lost it, and LedgerTotals.Preloads is above 1 from then on.
	NotePreload(ctx context.Context, saleID string, again bool) error

	// Settle applies events in order in one transaction: all or, on an error,
	// nothing. Verdicts are in the events' order. Settling an event again
	// repeats its verdict as far as it matters: VerdictKnown.
	Settle(ctx context.Context, events []Event) ([]Verdict, error)

	Purchase(ctx context.Context, purchaseID string) (Purchase, error)
	PurchasesOf(ctx context.Context, saleID, userID string) ([]Purchase, error)

	// EachPurchase calls fn for every purchase of a sale, by purchase ID.
	EachPurchase(ctx context.Context, saleID string, fn func(Purchase) error) error

	Totals(ctx context.Context, saleID string) (LedgerTotals, error)
}

// SaleRecord is a sale as the ledger has it.
type SaleRecord struct {
	Sale
	Remaining int64     // units the ledger has left
	ClosedAt  time.Time // zero: not closed by hand
}

// Loadable says whether the whole stock may be put into a counter that hasn't got
// the sale: ErrSaleBegun if the ledger shows that it has sold, ErrSaleLost if the
// counter had it before. The ledger follows the counter: what was sold in the last
// moments before the counter was lost may never reach it, so that a sale without a
// row may have sold all the same. Only a person can know, and say so with again.
func (r SaleRecord) Loadable(totals LedgerTotals, again bool) error {
	switch {
	case totals.Rows > 0 || r.Remaining != r.Stock:
		return fmt.Errorf("%s: %w", r.ID, ErrSaleBegun)
	case totals.Preloads > 0 && !again:
		return fmt.Errorf("%s: %w", r.ID, ErrSaleLost)
	}
	return nil
}

// LedgerTotals sums a sale's ledger rows, in units.
type LedgerTotals struct {
	Preloads  int64 // how often its stock was put into the counter: above 1 the counter has lost it
	Persisted int64 // persisted and paid
	Rejected  int64
	Cancelled int64
	Rows      int64 // rows, of any status
}

// Verdict is what the ledger made of an event.
type Verdict string

const (
	VerdictPersisted   Verdict = "persisted"
	VerdictRejected    Verdict = "rejected"     // stored as rejected: sold out or already bought
	VerdictKnown       Verdict = "known"        // settled before, nothing changed
	VerdictUnknownSale Verdict = "unknown_sale" // the ledger hasn't got the sale, nothing stored
)
