package lock

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Observer is told what happens to the locks of a Locker, for metrics and logs.
// A hook that is nil is left out. Hooks run on the caller's path, several at a
// time, so they are quick and safe for concurrent use.
type Observer struct {
	// Acquired is called at the end of every Acquire, granted or not, with
	// the time it took and its error.
	Acquired func(key string, wait time.Duration, outcome Outcome, err error)

	// Released is called after each granted lease's first Release, with the
	// time from the grant to the end of that release.
	Released func(key string, hold time.Duration)

	// ReleaseFailed is called when a release failed, so that the lock may be
	// held until its TTL has passed.
	ReleaseFailed func(key string, err error)

	// Lost is called when a lease turns out, at its release, to have been lost.
	Lost func(key string)
}

// Outcome says in a word how an Acquire ended; a label for metrics.
type Outcome string

const (
	OutcomeAcquired    Outcome = "acquired"
	OutcomeNotAcquired Outcome = "not_acquired" // contention
	OutcomeUnavailable Outcome = "unavailable"
	OutcomeCancelled   Outcome = "cancelled" // the caller's context ended
	OutcomeFailed      Outcome = "failed"    // anything else: a fault of the variant
)

// OutcomeOf is the outcome of an Acquire that returned err.
func OutcomeOf(err error) Outcome {
	switch {
	case err == nil:
		return OutcomeAcquired
	case errors.Is(err, ErrNotAcquired):
		return OutcomeNotAcquired
	case errors.Is(err, ErrUnavailable): // wraps a driver's timeout, which is a DeadlineExceeded too
		return OutcomeUnavailable
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return OutcomeCancelled
	default:
		return OutcomeFailed
	}
}

// Observe returns a Locker that does what locker does and tells observer.
func Observe(locker Locker, observer Observer) Locker {
	return &observed{locker: locker, observer: observer}
}

type observed struct {
	locker   Locker
	observer Observer
}

func (o *observed) Acquire(ctx context.Context, key string) (Lease, error) {
	return o.observe(key, func() (Lease, error) { return o.locker.Acquire(ctx, key) })
}

// AcquireThen reaches the Locker that is observed; see [AcquireThen].
func (o *observed) AcquireThen(ctx context.Context, key string, first Step) (Lease, error) {
	return o.observe(key, func() (Lease, error) { return AcquireThen(ctx, o.locker, key, first) })
}

func (o *observed) observe(key string, acquire func() (Lease, error)) (Lease, error) {
	start := time.Now()
	lease, err := acquire()
	granted := time.Now()
	if o.observer.Acquired != nil {
		o.observer.Acquired(key, granted.Sub(start), OutcomeOf(err), err)
	}
	if err != nil {
		return nil, err
	}
	return &observedLease{Lease: lease, observer: &o.observer, granted: granted}, nil
}

type observedLease struct {
	Lease
	observer *Observer
	granted  time.Time
	once     sync.Once
}

func (l *observedLease) Release(ctx context.Context) error {
	err := l.Lease.Release(ctx)
	l.once.Do(func() { l.report(err) })
	return err
}

// First reaches the lease that is observed; see [First].
func (l *observedLease) First() (any, bool) { return First(l.Lease) }

// ReleaseAfter reaches the lease that is observed; see [ReleaseAfter].
func (l *observedLease) ReleaseAfter(ctx context.Context, last Step) (any, error) {
	return ReleaseAfter(ctx, l.Lease, last)
}

// Retire reaches the lease that is observed; see [Retire].
func (l *observedLease) Retire() { Retire(l.Lease) }

func (l *observedLease) report(err error) {
	o := l.observer
	if o.Released != nil {
		o.Released(l.Key(), time.Since(l.granted))
	}
	switch lost := errors.Is(err, ErrLost); {
	case lost && o.Lost != nil:
		o.Lost(l.Key())
	case !lost && err != nil && o.ReleaseFailed != nil:
		o.ReleaseFailed(l.Key(), err)
	}
}
