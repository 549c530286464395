package stock

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"flashsale/internal/lock"
)

const (
	// defaultBatch is how many purchases one acquisition serves at most.
	defaultBatch = 256

	// workBudget ends a batch of a sale that asks for work inside the lock: who
	// came first should not wait for the work of all the others.
	workBudget = time.Second
)

// CombiningOptions configures NewCombining; the zero value is the default.
type CombiningOptions struct {
	// Batch is how many purchases one acquisition serves at most; 0 = 256.
	Batch int

	// Wait is how long a purchase waits until it is sent; 0 = lock.DefaultWait.
	// It should be what the Locker was told.
	Wait time.Duration
}

// Combining is the Seller that lets all purchases of a sale that wait in this
// process share one acquisition and one deduction: they go to the counter as a
// batch, in the order in which they came (flat combining: Hendler, Incze,
// Shavit, Tzafrir, SPAA 2010). The lock's round trips are paid once for all of
// them, so the more come at once, the less each costs.
//
// A variant without a lock is combined too, and then without any waiting on
// purpose: who comes alone is sent alone, at once; who comes while a batch is
// under way goes with the next, together with whoever else has come by then.
//
// Once the counter has said that a sale is sold out, that stands for 200 ms; see
// soldOut.
//
// Each purchase keeps what is its own: its idempotency key, its verdict, its
// context. A client that hangs up takes itself out of the batch and changes
// nothing for the others. What is said of the batch as a whole (ErrBusy,
// ErrStale, ErrUnavailable, ErrOutcomeUnknown) is said to each of it.
type Combining struct {
	direct *Direct
	batch  int
	wait   time.Duration

	soldOut soldOut

	mu    sync.Mutex
	lines map[string]*line // by sale; a line exists while somebody is about to serve it
}

// NewCombining returns a Seller that combines the purchases of the variants
// that ask for it, and leaves those of the others to direct.
func NewCombining(direct *Direct, options CombiningOptions) *Combining {
	if options.Batch == 0 {
		options.Batch = defaultBatch
	}
	if options.Wait == 0 {
		options.Wait = lock.DefaultWait
	}
	return &Combining{direct: direct, batch: options.Batch, wait: options.Wait, lines: make(map[string]*line), soldOut: newSoldOut()}
}

var _ Seller = (*Combining)(nil)

var errNotSent = errors.New("those before were not answered in time")

// line is the purchases of a sale that wait. There is a goroutine that is going
// to serve them, for as long as there are any.
type line struct {
	waiting  []*ticket
	patience *time.Timer        // calls expire when the first in line, or one before, has waited long enough; nil when nobody has joined since
	giveUp   context.CancelFunc // ends the acquisition under way; nil when there is none
}

// ticket is a place in the line.
type ticket struct {
	order
	asked time.Time
	place place
	done  chan struct{} // closed when receipt and err are the answer
	err   error
}

type place int

const (
	waiting place = iota
	taken         // into the batch, whose deduction is not sent yet
	sent          // from here on it can't be taken back
	left          // gave up, nothing was sent for it
)

// Purchase waits in line for its answer.
func (c *Combining) Purchase(ctx context.Context, request Request) (Receipt, error) {
	o, err := c.direct.order(ctx, request)
	if err != nil {
		return o.receipt, err
	}
	locked := o.variant.Locker != nil
	// Without a lock nobody's work has to wait for another's.
	if !o.variant.Combine || !locked && o.sale.Work.Max > 0 {
		return c.direct.fulfil(ctx, o)
	}
	asked := c.direct.now()
	if c.soldOut.refuses(request, o.sale, asked) {
		return o.receipt, ErrSoldOut
	}
	o.receipt.Locked = locked
	t := &ticket{order: o, asked: asked, done: make(chan struct{})}
	l := c.join(t)
	select {
	case <-t.done:
		return t.receipt, t.err
	case <-ctx.Done():
	}
	unsent := c.leave(l, t)
	select {
	case <-t.done: // at the same moment
		return t.receipt, t.err
	default:
	}
	if locked {
		o.receipt.LockWait = c.direct.now().Sub(t.asked)
	}
	if unsent {
		return o.receipt, fmt.Errorf("%w: %w", ErrUnavailable, context.Cause(ctx))
	}
	return o.receipt, fmt.Errorf("%w: %w", ErrOutcomeUnknown, context.Cause(ctx))
}

// join puts t at the end of its sale's line, which is served from now on.
func (c *Combining) join(t *ticket) *line {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.lines[t.sale.ID]
	if l == nil {
		l = &line{}
		c.lines[t.sale.ID] = l
		if t.variant.Locker == nil {
			go c.serveUnlocked(t.sale.ID, l)
		} else {
			go c.serve(t.sale.ID, l)
		}
	}
	l.waiting = append(l.waiting, t)
	if l.patience == nil {
		l.patience = time.AfterFunc(c.wait, func() { c.expire(l) })
	}
	return l
}

// leave takes t back, unless it has been sent.
func (c *Combining) leave(l *line, t *ticket) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.place >= sent {
		return false
	}
	if t.place == waiting {
		l.remove(t)
		l.giveUpIfEmpty()
	}
	t.place = left
	return true
}

// expire answers those who have waited too long: the first in line. One timer
// serves them all, so that a purchase that is answered in time needs none.
func (c *Combining) expire(l *line) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l.patience = nil
	now := c.direct.now()
	for len(l.waiting) > 0 {
		t := l.waiting[0]
		waited := now.Sub(t.asked)
		if waited < c.wait {
			l.patience = time.AfterFunc(c.wait-waited, func() { c.expire(l) })
			return
		}
		l.waiting = l.waiting[1:]
		t.place = left
		// Without a lock, the counter is slow to answer those before.
		err := fmt.Errorf("%w: %w", ErrUnavailable, errNotSent)
		if t.receipt.Locked {
			err = fmt.Errorf("%w: %w", ErrBusy, lock.ErrNotAcquired)
		} else {
			waited = 0
		}
		t.answer(waited, 0, Result{}, err)
	}
	l.giveUpIfEmpty()
}

func (l *line) giveUpIfEmpty() {
	if len(l.waiting) == 0 && l.giveUp != nil {
		l.giveUp() // nobody needs the lock any more
	}
}

// end forgets a line that nobody stands in.
func (c *Combining) end(saleID string, l *line) {
	delete(c.lines, saleID)
	if l.patience != nil {
		l.patience.Stop()
	}
}

func (l *line) remove(t *ticket) {
	l.waiting = slices.DeleteFunc(l.waiting, func(other *ticket) bool { return other == t })
}

// serve serves a line once: it acquires the lock, and deducts for who is in line
// by then as one batch. As soon as that is sent, whoever is left or comes asks for
// the next batch, so that the lock can go from one to the other in the exchange
// that ends this one.
//
// Its context is no request's: who asked first may hang up while the others go on
// waiting.
func (c *Combining) serve(saleID string, l *line) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if first, askedFor := c.ask(saleID, l, cancel); first != nil {
		c.round(ctx, l, first, askedFor)
	}
}

// serveUnlocked is serve for a counter that needs no lock. A batch that has been
// sent goes on whoever hangs up; the counter bounds how long it takes.
func (c *Combining) serveUnlocked(saleID string, l *line) {
	for {
		c.letJoin(l)
		batch := c.sendAll(saleID, l)
		if len(batch) == 0 {
			return
		}
		asked := c.direct.now()
		results, err := deductAll(context.Background(), batch[0].variant.Counter, nil, 0, batch)
		if err == nil {
			c.soldOut.learn(batch, results, asked)
		}
		for i, t := range batch {
			var result Result
			if err == nil {
				result = results[i]
			}
			t.answer(0, 0, result, err)
		}
	}
}

// letJoin lets those purchases join the line that are ready to run in this
// process: they would else find the batch just gone, and every batch costs the same
// round trip. It waits for nobody: it ends once nobody has joined meanwhile.
func (c *Combining) letJoin(l *line) {
	for before := -1; ; {
		c.mu.Lock()
		n := len(l.waiting)
		c.mu.Unlock()
		if n == before || n >= c.batch {
			return
		}
		before = n
		runtime.Gosched()
	}
}

// sendAll takes a batch out of the line, past the point of no return, or ends
// the line when nobody is there.
func (c *Combining) sendAll(saleID string, l *line) (batch []*ticket) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := min(len(l.waiting), c.batch)
	if n == 0 {
		c.end(saleID, l)
		return nil
	}
	batch = slices.Clone(l.waiting[:n])
	l.waiting = slices.Delete(l.waiting, 0, n)
	for _, t := range batch {
		t.place = sent
	}
	return batch
}

// ask begins a round: it returns the first in line and those for whom the lock
// is asked, or ends the line when there is nobody.
func (c *Combining) ask(saleID string, l *line, giveUp context.CancelFunc) (first *ticket, askedFor []*ticket) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(l.waiting) == 0 {
		c.end(saleID, l)
		return nil, nil
	}
	l.giveUp = giveUp
	return l.waiting[0], append(askedFor, l.waiting...)
}

// passOn ends a round's part in the line: somebody else serves who is left.
func (c *Combining) passOn(l *line, saleID string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(l.waiting) > 0 {
		go c.serve(saleID, l)
	} else {
		c.end(saleID, l)
	}
}

// round acquires the lock once, and serves who is in line by then as one batch.
func (c *Combining) round(ctx context.Context, l *line, first *ticket, askedFor []*ticket) {
	var (
		d       = c.direct
		granted time.Time
		batch   []*ticket
		results []Result
	)
	err := lock.Do(ctx, first.variant.Locker, first.sale.ID, func(ctx context.Context, lease lock.Lease) (err error) {
		granted = d.now()
		c.granted(l)
		c.letJoin(l)
		batch, err = c.collect(ctx, l, granted)
		if err == nil {
			batch = c.send(batch)
		}
		c.passOn(l, first.sale.ID)
		if err != nil {
			return err
		}
		asked := d.now()
		if results, err = deductAll(ctx, first.variant.Counter, lease, first.sale.fence(lease), batch); err == nil {
			c.soldOut.learn(batch, results, asked)
		}
		return err
	})
	released := d.now()
	if granted.IsZero() { // whoever came later is asked for in the next round
		err = refusedLock(err)
		for _, t := range c.claim(l, askedFor) {
			t.answer(released.Sub(t.asked), 0, Result{}, err)
		}
		c.passOn(l, first.sale.ID)
		return
	}
	err = lostLock(err)
	for i, t := range batch {
		var result Result
		if err == nil {
			result = results[i]
		}
		t.answer(granted.Sub(t.asked), max(1, released.Sub(granted)), result, err)
	}
}

func (c *Combining) granted(l *line) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l.giveUp = nil
}

// collect takes from the line one after the other, each with its work done,
// those that come meanwhile too, until a batch is full.
func (c *Combining) collect(ctx context.Context, l *line, granted time.Time) (batch []*ticket, err error) {
	for len(batch) < c.batch && c.direct.now().Sub(granted) < workBudget {
		t := c.next(l)
		if t == nil {
			return batch, nil
		}
		batch = append(batch, t)
		if err := c.direct.work(ctx, t.sale.Work); err != nil {
			return batch, err
		}
	}
	return batch, nil
}

func (c *Combining) next(l *line) *ticket {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(l.waiting) == 0 {
		return nil
	}
	t := l.waiting[0]
	l.waiting = l.waiting[1:]
	t.place = taken
	return t
}

// send is the point of no return: who has not left by now gets what comes.
func (c *Combining) send(batch []*ticket) (staying []*ticket) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range batch {
		if t.place != left {
			t.place = sent
			staying = append(staying, t)
		}
	}
	return staying
}

// claim takes these out of the line, without those that have left.
func (c *Combining) claim(l *line, tickets []*ticket) (claimed []*ticket) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l.giveUp = nil
	for _, t := range tickets {
		if t.place == waiting {
			l.remove(t)
			t.place = taken
			claimed = append(claimed, t)
		}
	}
	return claimed
}

// answer ends the ticket's wait. Who came while the batch was being worked on
// has not waited for the lock at all.
func (t *ticket) answer(wait, hold time.Duration, result Result, err error) {
	if t.err = err; err == nil {
		t.err = result.Err
	}
	t.receipt.LockWait, t.receipt.LockHold = max(0, wait), hold
	if t.err == nil {
		t.receipt = t.receipt.with(result)
	}
	close(t.done)
}

func deductAll(ctx context.Context, counter Counter, lease lock.Lease, fence uint64, batch []*ticket) ([]Result, error) {
	if len(batch) == 0 {
		return nil, nil
	}
	deductions := make([]Deduction, len(batch))
	for i, t := range batch {
		deductions[i] = t.deduction
	}
	results, err := deductUnder(ctx, counter, lease, fence, deductions)
	if err == nil && len(results) != len(batch) {
		err = fmt.Errorf("%w: %d results for %d deductions", ErrOutcomeUnknown, len(results), len(batch))
	}
	return results, err
}
