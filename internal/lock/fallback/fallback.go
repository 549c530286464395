package fallback

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/sony/gobreaker/v2"

	"flashsale/internal/lock"
)

// Fallback is a lock with a circuit breaker in front.
//
// Protects against:  callers who pile up behind a store that is down; with Degrade, a sale that stands still as long as it is.
// Still fails when:  it has degraded and there is a second process: each has its own holder. See the package.
// Fixed by:          Reject; or a guard in the database that the holders write to.
type Fallback struct {
	store   lock.Locker
	options Options
	breaker *gobreaker.TwoStepCircuitBreaker[lock.Lease]
	queue   lock.Queue // of Degrade: one holder a key in this process, of whichever lock
}

// New puts a breaker in front of store.
func New(store lock.Locker, options Options) (*Fallback, error) {
	if err := options.validate(); err != nil {
		return nil, err
	}
	options = options.withDefaults()
	settings := gobreaker.Settings{
		MaxRequests:  uint32(options.Probes),
		Timeout:      options.Pause,
		ReadyToTrip:  func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= uint32(options.Failures) },
		IsSuccessful: answered,
		IsExcluded:   func(err error) bool { return !answered(err) && !errors.Is(err, lock.ErrUnavailable) },
	}
	if options.Changed != nil {
		settings.OnStateChange = func(_ string, from, to gobreaker.State) { options.Changed(stateOf(from), stateOf(to)) }
	}
	return &Fallback{
		store:   store,
		options: options,
		breaker: gobreaker.NewTwoStepCircuitBreaker[lock.Lease](settings),
	}, nil
}

var _ lock.Locker = (*Fallback)(nil)

// answered says that the store is there: it granted the lock, or it knows who
// holds it.
func answered(err error) bool { return err == nil || errors.Is(err, lock.ErrNotAcquired) }

// Acquire asks the store unless the breaker is open.
func (f *Fallback) Acquire(ctx context.Context, key string) (lock.Lease, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if f.options.Mode == Reject {
		return f.ask(ctx, key)
	}
	turn, err := f.queue.Enter(ctx, key, f.options.Wait)
	if err != nil {
		return nil, fmt.Errorf("fallback: acquire %q: %w", key, err)
	}
	l := &lease{turn: turn}
	defer func() {
		if l.Lease == nil {
			turn.Leave()
		}
	}()
	l.Lease, err = f.ask(ctx, key)
	if errors.Is(err, errOpen) || errors.Is(err, lock.ErrUnavailable) && f.State() != Closed {
		l.degraded = true
		l.Lease, err = f.options.To.Acquire(ctx, key)
	}
	if err != nil {
		return nil, err
	}
	return l, nil
}

// errOpen says that the store wasn't asked.
var errOpen = fmt.Errorf("%w: it failed just now, and isn't asked for a while", lock.ErrUnavailable)

// ask asks the store if the breaker lets it, and tells the breaker how it went,
// even when the store's lock panics: a probe that never ended would keep the
// breaker half open.
func (f *Fallback) ask(ctx context.Context, key string) (lock.Lease, error) {
	done, refused := f.breaker.Allow()
	if refused != nil {
		return nil, fmt.Errorf("fallback: acquire %q: %w", key, errOpen)
	}
	outcome := errors.New("fallback: it didn't return")
	defer func() { done(outcome) }()
	lease, err := f.store.Acquire(ctx, key)
	outcome = err
	return lease, err
}

// State is the breaker's: Open only as long as the next caller isn't to try the
// store.
func (f *Fallback) State() State { return stateOf(f.breaker.State()) }

// Close closes both locks, as far as they can be closed.
func (f *Fallback) Close() error {
	var errs []error
	for _, locker := range []lock.Locker{f.store, f.options.To} {
		if c, ok := locker.(io.Closer); ok {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}

func stateOf(s gobreaker.State) State {
	switch s {
	case gobreaker.StateClosed:
		return Closed
	case gobreaker.StateOpen:
		return Open
	default:
		return HalfOpen
	}
}

// lease is one of Degrade, of either lock.
type lease struct {
	lock.Lease
	turn     *lock.Turn
	degraded bool
}

// Fence is 0 for a degraded lease; why, the package says.
func (l *lease) Fence() uint64 {
	if l.degraded {
		return 0
	}
	return l.Lease.Fence()
}

// Release gives the lock back, and then the turn in this process: while the store
// may still know of this lease, nobody here is granted another.
func (l *lease) Release(ctx context.Context) error {
	defer l.turn.Leave()
	return l.Lease.Release(ctx)
}

// Retire reaches the lease below; see lock.Retire.
func (l *lease) Retire() { lock.Retire(l.Lease) }
