package stock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"time"

	mathrand "math/rand/v2"

	"flashsale/internal/lock"
)

// Seller makes purchases.
type Seller interface {
	// Purchase returns the receipt of an accepted purchase, or why there is
	// none: an *InvalidError or one of this package's errors. The receipt's
	// Variant, Locked, LockWait and LockHold are set beside an error too.
	Purchase(ctx context.Context, request Request) (Receipt, error)
}

// Variant is a way to guard a sale: a counter, and the lock to hold around it.
type Variant struct {
	Locker  lock.Locker // nil: the counter needs none
	Counter Counter
	Combine bool // let purchases that wait share a deduction, and its lock if there is one, where the Seller can; see NewCombining
}

// DirectOptions configures NewDirect. Sales and Variants are needed.
type DirectOptions struct {
	Sales    Sales              // where a sale's terms stand
	Variants map[string]Variant // by name

	Now    func() time.Time                           // default time.Now
	Random io.Reader                                  // keys of requests without one; default crypto/rand
	Sleep  func(context.Context, time.Duration) error // default: sleep until the context ends
}

// NewDirect returns the Seller that acquires the lock once for each purchase.
func NewDirect(options DirectOptions) *Direct {
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Random == nil {
		options.Random = rand.Reader
	}
	if options.Sleep == nil {
		options.Sleep = sleep
	}
	return &Direct{
		variants: options.Variants,
		terms:    newTermsCache(options.Sales, options.Now),
		now:      options.Now,
		random:   options.Random,
		sleep:    options.Sleep,
	}
}

// Direct is the plain Seller: one purchase, one lock, one deduction.
type Direct struct {
	variants map[string]Variant
	terms    *termsCache
	now      func() time.Time
	random   io.Reader
	sleep    func(context.Context, time.Duration) error
}

var _ Seller = (*Direct)(nil)

// Purchase is the whole path of a purchase: name it, lock, deduct, release.
func (d *Direct) Purchase(ctx context.Context, request Request) (Receipt, error) {
	o, err := d.order(ctx, request)
	if err != nil {
		return o.receipt, err
	}
	return d.fulfil(ctx, o)
}

// order is a request together with all that its purchase needs.
type order struct {
	sale      Sale
	variant   Variant
	deduction Deduction
	receipt   Receipt // what of it is known by now
}

// order looks up the sale and names the purchase. Beside an error the receipt
// has what was found until then.
func (d *Direct) order(ctx context.Context, request Request) (o order, err error) {
	if err := request.Validate(); err != nil {
		return o, err
	}
	if o.sale, err = d.terms.get(ctx, request.SaleID); err != nil {
		return o, err
	}
	o.receipt = Receipt{SaleID: o.sale.ID, Quantity: request.Quantity, Variant: o.sale.Variant}
	offered := false
	if o.variant, offered = d.variants[o.sale.Variant]; !offered {
		return o, &NotOfferedError{Variant: o.sale.Variant}
	}
	if o.deduction, err = d.deduction(o.sale, request); err != nil {
		return o, err
	}
	o.receipt.PurchaseID = o.deduction.PurchaseID
	return o, nil
}

func (d *Direct) fulfil(ctx context.Context, o order) (Receipt, error) {
	// What the counter answered stands, whatever becomes of the lock after it;
	// after an error nothing is put back. If the deduction did happen, then its
	// event is in the outbox, and a repetition finds it by its purchase ID.
	var result Result
	deduct := func(ctx context.Context, lease lock.Lease) (err error) {
		if err := d.work(ctx, o.sale.Work); err != nil {
			return err
		}
		result, err = deductOne(ctx, o.variant.Counter, lease, o.sale.fence(lease), o.deduction)
		return err
	}
	var err error
	if o.variant.Locker == nil {
		err = deduct(ctx, nil)
	} else {
		err = d.locked(ctx, o.variant.Locker, o.first(), o.sale, &o.receipt, deduct)
	}
	if err != nil {
		return o.receipt, err
	}
	return o.receipt.with(result), nil
}

// first is what the holder of the lock does first, if that can come with the
// grant: the counter's read, which needs a fence to read by, and would be old after
// any work. nil: nothing can.
func (o *order) first() *lock.Step {
	fusing, ok := o.variant.Counter.(Fusing)
	if !ok || !o.sale.Fencing || o.sale.Work.Max > 0 {
		return nil
	}
	step, err := fusing.First([]Deduction{o.deduction})
	if err != nil { // Deduct will say so
		return nil
	}
	return &step
}

// with is the receipt of an order that got this result.
func (r Receipt) with(result Result) Receipt {
	r.Remaining, r.Fence, r.Replayed = result.Remaining, result.Fence, result.Replayed
	return r
}

// locked runs deduct under the sale's lock and returns its error. It measures
// from asking for the lock to having it, and from there to having released it.
func (d *Direct) locked(ctx context.Context, locker lock.Locker, first *lock.Step, sale Sale, receipt *Receipt, deduct func(context.Context, lock.Lease) error) error {
	asked, granted := d.now(), time.Time{}
	err := lock.DoThen(ctx, locker, sale.ID, first, func(ctx context.Context, lease lock.Lease) error {
		granted = d.now()
		err := deduct(ctx, lease)
		if errors.Is(err, ErrOutcomeUnknown) {
			lock.Retire(lease) // it may still happen, and must not under the next holder's fence
		}
		return err
	})
	receipt.Locked = true
	if granted.IsZero() {
		receipt.LockWait = d.now().Sub(asked)
		return refusedLock(err)
	}
	receipt.LockWait, receipt.LockHold = granted.Sub(asked), max(1, d.now().Sub(granted))
	return lostLock(err)
}

// fence is what the counter is told of a lease; nil: none.
func (s Sale) fence(lease lock.Lease) uint64 {
	if lease == nil || !s.Fencing {
		return 0
	}
	return lease.Fence()
}

// refusedLock translates the error of a lock that was not granted. Nothing has
// been deducted.
func refusedLock(err error) error {
	if errors.Is(err, lock.ErrNotAcquired) {
		return fmt.Errorf("%w: %w", ErrBusy, err)
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// lostLock translates the error of a deduction whose lock was lost under way:
// nothing deducted is stale, but an outcome that is unknown stays unknown.
func lostLock(err error) error {
	if errors.Is(err, lock.ErrLost) && !errors.Is(err, ErrOutcomeUnknown) {
		return fmt.Errorf("%w: %w", ErrStale, err)
	}
	return err
}

func (d *Direct) deduction(sale Sale, request Request) (Deduction, error) {
	key := request.IdempotencyKey
	if key == "" {
		var err error
		if key, err = RandomKey(d.random); err != nil {
			return Deduction{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
	}
	return Deduction{
		PurchaseID: PurchaseID(sale.ID, request.UserID, key),
		SaleID:     sale.ID, ItemID: sale.ItemID, UserID: request.UserID,
		Quantity: request.Quantity, PriceCents: sale.PriceCents, Variant: sale.Variant,
		// The ledger keeps microseconds; what passes through it stays the same.
		At: d.now().UTC().Truncate(time.Microsecond),
	}, nil
}

// work spends the time that the sale asks for inside the lock.
func (d *Direct) work(ctx context.Context, work WorkRange) error {
	if work.Max <= 0 {
		return nil
	}
	duration := work.Min + time.Duration(mathrand.Int64N(int64(work.Max-work.Min)+1))
	err := d.sleep(ctx, duration)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause // it tells a lost lock from a caller that gave up
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return nil
}

func deductOne(ctx context.Context, counter Counter, lease lock.Lease, fence uint64, deduction Deduction) (Result, error) {
	results, err := deductUnder(ctx, counter, lease, fence, []Deduction{deduction})
	switch {
	case err != nil:
		return Result{}, err
	case len(results) != 1:
		return Result{}, fmt.Errorf("%w: %d results for one deduction", ErrOutcomeUnknown, len(results))
	}
	return results[0], results[0].Err
}

// deductUnder is the last thing done under a lease, which it may end; nil: there
// is none.
func deductUnder(ctx context.Context, counter Counter, lease lock.Lease, fence uint64, batch []Deduction) ([]Result, error) {
	if fusing, ok := counter.(Fusing); ok && lease != nil {
		return fusing.DeductAndLeave(ctx, lease, fence, batch)
	}
	return counter.Deduct(ctx, fence, batch)
}

func sleep(ctx context.Context, duration time.Duration) error {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
