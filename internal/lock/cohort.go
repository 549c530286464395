package lock

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Cohort lets the waiters of one process take over a lease from each other, so
// that the store is asked once for many of them (lock cohorting: Dice, Marathe,
// Shavit, PPoPP 2012). How many and for how long is bounded, and after that the
// other processes come first.
//
// Protects against:  what the lock below it does, without a round trip to the store for each holder.
// Still fails when:  that one does; and the fence can't tell holders of one lease apart: a write that one left under way when it released may take effect under the next.
// Fixed by:          Retire, by who doesn't know what became of its write; or the lock below alone.
type Cohort struct {
	below Locker
	CohortOptions

	mu     sync.Mutex
	groups map[string]*group // by key; exists while somebody holds it or waits
}

// CohortOptions are the options of NewCohort; the zero value is the default.
type CohortOptions struct {
	// Wait is how long Acquire waits for its turn in this process; 0 =
	// DefaultWait, negative = TryOnce. Who is first then waits for the lock
	// below as long as that one was told to.
	Wait time.Duration

	// Count and Time are how many holders one lease serves, and how old it may
	// be when it is handed on; 0 = 64 and 20 ms.
	Count int
	Time  time.Duration

	// Yield is how long this process stays away from the lock below after it
	// has used that up, or it would win it again each time; 0 = 2 ms.
	Yield time.Duration
}

// NewCohort makes a Cohort over below, which is asked by one caller a key at a
// time. Its Close closes below, if that can be closed.
func NewCohort(below Locker, options CohortOptions) *Cohort {
	if options.Wait == 0 {
		options.Wait = DefaultWait
	}
	if options.Count == 0 {
		options.Count = 64
	}
	if options.Time == 0 {
		options.Time = 20 * time.Millisecond
	}
	if options.Yield == 0 {
		options.Yield = 2 * time.Millisecond
	}
	return &Cohort{below: below, CohortOptions: options, groups: make(map[string]*group)}
}

var _ Locker = (*Cohort)(nil)

// group is who holds a key or waits for it.
type group struct {
	waiting []chan turn // each with room for one turn
	current *cohortLease
	tenure  *tenure
}

// turn is the right to hold: with the lease that the one before has left, or
// without one, to get it from below, after a pause if others should come first.
type turn struct {
	tenure *tenure
	yield  bool
}

// tenure is one lease of the lock below.
type tenure struct {
	lease   Lease
	since   time.Time
	holders int
	over    chan struct{} // closed when it has been released
}

// Acquire waits for its turn in this process, and gets the lease from the holder
// before, or from the lock below.
func (c *Cohort) Acquire(ctx context.Context, key string) (Lease, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	mine, err := c.await(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("lock: acquire %q: %w", key, err)
	}
	if mine.tenure != nil {
		return c.hold(key, mine.tenure), nil
	}
	if mine.yield {
		if err := sleep(ctx, c.Yield/2+rand.N(c.Yield)); err != nil {
			c.next(key, turn{})
			return nil, fmt.Errorf("lock: acquire %q: %w", key, err)
		}
	}
	lease, err := c.below.Acquire(ctx, key)
	if err != nil {
		c.next(key, turn{})
		return nil, err
	}
	t := &tenure{lease: lease, since: time.Now(), over: make(chan struct{})}
	if lease.Lost() != nil {
		go c.watch(key, t)
	}
	return c.hold(key, t), nil
}

// Close closes the lock below.
func (c *Cohort) Close() error {
	if closer, ok := c.below.(io.Closer); ok {
		return closer.Close()
	}
	return nil
}

// await waits until it is this caller's turn.
func (c *Cohort) await(ctx context.Context, key string) (turn, error) {
	c.mu.Lock()
	g := c.groups[key]
	if g == nil {
		c.groups[key] = &group{}
		c.mu.Unlock()
		return turn{}, nil
	}
	if c.Wait < 0 {
		c.mu.Unlock()
		return turn{}, ErrNotAcquired
	}
	mine := make(chan turn, 1)
	g.waiting = append(g.waiting, mine)
	c.mu.Unlock()

	timer := time.NewTimer(c.Wait)
	defer timer.Stop()
	err := ErrNotAcquired
	select {
	case t := <-mine:
		return t, nil
	case <-timer.C:
	case <-ctx.Done():
		err = ctx.Err()
	}
	c.leave(ctx, key, g, mine)
	return turn{}, err
}

// leave gives up waiting. A turn that has come just now is passed on: what came
// with it must not be left lying about.
func (c *Cohort) leave(ctx context.Context, key string, g *group, mine chan turn) {
	c.mu.Lock()
	if i := slices.Index(g.waiting, mine); i >= 0 {
		g.waiting = slices.Delete(g.waiting, i, i+1)
		c.mu.Unlock()
		return
	}
	c.mu.Unlock()
	t := <-mine
	if t.tenure == nil {
		c.next(key, t)
		return
	}
	_ = c.pass(ctx, key, t.tenure, false) // ended by its TTL, if it can't be released
}

// hold makes the caller the holder.
func (c *Cohort) hold(key string, t *tenure) Lease {
	c.mu.Lock()
	defer c.mu.Unlock()
	t.holders++
	l := &cohortLease{cohort: c, key: key, tenure: t}
	if t.lease.Lost() != nil {
		l.lost = make(chan struct{})
		if isClosed(t.lease.Lost()) {
			close(l.lost)
		}
	}
	g := c.groups[key]
	g.current, g.tenure = l, t
	return l
}

// watch tells who holds the lease when it is lost.
func (c *Cohort) watch(key string, t *tenure) {
	select {
	case <-t.over:
		return
	case <-t.lease.Lost():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if g := c.groups[key]; g != nil && g.tenure == t && g.current != nil && !isClosed(g.current.lost) {
		close(g.current.lost)
	}
}

// pass ends a holder's time: the next one in line takes the lease over if it
// may, else it is released.
func (c *Cohort) pass(ctx context.Context, key string, t *tenure, retired bool) error {
	c.mu.Lock()
	g := c.groups[key]
	g.current = nil
	usedUp := t.holders >= c.Count || time.Since(t.since) >= c.Time
	if len(g.waiting) > 0 && !usedUp && !retired && !isClosed(t.lease.Lost()) {
		g.advance(turn{tenure: t})
		c.mu.Unlock()
		return nil
	}
	g.tenure = nil
	c.mu.Unlock()

	close(t.over)
	err := t.lease.Release(ctx)
	c.next(key, turn{yield: usedUp})
	return err
}

// next gives the turn to whoever is next, without a lease.
func (c *Cohort) next(key string, t turn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if g := c.groups[key]; len(g.waiting) > 0 {
		g.advance(t)
	} else {
		delete(c.groups, key)
	}
}

func (g *group) advance(t turn) {
	g.waiting[0] <- t
	g.waiting = slices.Delete(g.waiting, 0, 1)
}

type cohortLease struct {
	cohort *Cohort
	key    string
	tenure *tenure
	lost   chan struct{} // nil when the lock below notices none

	mu      sync.Mutex // of Release
	retired bool
	done    bool
	err     error
}

func (l *cohortLease) Key() string { return l.key }

// Fence is that of the lease below: who took it over has the same one as who
// left it.
func (l *cohortLease) Fence() uint64 { return l.tenure.lease.Fence() }

// Lost is closed when the lease is lost while this holder has it.
func (l *cohortLease) Lost() <-chan struct{} { return l.lost }

// Release hands the lease to the next in line, or gives it back.
func (l *cohortLease) Release(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.done {
		l.done = true
		l.err = l.cohort.pass(ctx, l.key, l.tenure, l.retired)
	}
	return l.err
}

// Retire keeps the lease from being handed on.
func (l *cohortLease) Retire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.retired = true
}

// Retire makes sure that whoever holds the lock next has a fence of its own. Call
// it before the release when a write made under the lease may still be under
// way: the fence is then what keeps it from taking effect later.
func Retire(lease Lease) {
	if l, ok := lease.(interface{ Retire() }); ok {
		l.Retire()
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
