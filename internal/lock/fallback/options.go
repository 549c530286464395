package fallback

import (
	"fmt"
	"time"

	"flashsale/internal/lock"
)

// Mode is what Acquire does while the breaker is open.
type Mode int

const (
	Reject  Mode = iota // lock.ErrUnavailable at once, without asking the store
	Degrade             // a lease of another lock; read the package's words on it first
)

// State is that of the breaker, as a label for metrics.
type State string

const (
	Closed   State = "closed"    // the store is asked
	Open     State = "open"      // it isn't
	HalfOpen State = "half_open" // a few callers ask it, for the others it is open
)

// Options are the options of New; the zero value is the default.
type Options struct {
	Mode Mode

	// To is the lock that Degrade turns to; nil = a lock.Local with this Wait.
	To lock.Locker

	// Wait is how long Degrade lets a caller wait for those of its own process,
	// before it asks either lock; 0 = lock.DefaultWait, negative = lock.TryOnce.
	// Reject has no line of its own.
	Wait time.Duration

	// Failures is how many lock.ErrUnavailable in a row open the breaker; 0 = 3.
	// With Degrade the callers of one key come one by one: a store that hangs costs
	// so many times the client's timeout.
	Failures int

	// Pause is how long it stays open before callers try the store again; 0 = 1 s.
	Pause time.Duration

	// Probes is how many callers try it then, and all of them must have had an
	// answer for the breaker to close; 0 = 1.
	Probes int

	// Changed is told of each change, by the caller that caused it and in the order
	// of the changes. It must be quick, and must not use this lock.
	// The change from Open to HalfOpen happens when somebody asks.
	Changed func(from, to State)
}

func (o Options) withDefaults() Options {
	if o.Wait == 0 {
		o.Wait = lock.DefaultWait
	}
	if o.Failures == 0 {
		o.Failures = 3
	}
	if o.Pause == 0 {
		o.Pause = time.Second
	}
	if o.Probes == 0 {
		o.Probes = 1
	}
	if o.Mode == Degrade && o.To == nil {
		o.To = lock.NewLocal(lock.LocalOptions{Wait: o.Wait})
	}
	return o
}

func (o Options) validate() error {
	switch {
	case o.Mode != Reject && o.Mode != Degrade:
		return fmt.Errorf("fallback: option Mode is %d, allowed: Reject, Degrade", o.Mode)
	case o.Mode == Reject && o.To != nil:
		return fmt.Errorf("fallback: option To is set, allowed: with Mode Degrade")
	case o.Failures < 0 || o.Failures > 1000:
		return fmt.Errorf("fallback: option Failures is %d, allowed: 1 to 1000, or 0 for the default", o.Failures)
	case o.Pause < 0:
		return fmt.Errorf("fallback: option Pause is %v, allowed: more than 0s, or 0s for the default", o.Pause)
	case o.Probes < 0 || o.Probes > 1000:
		return fmt.Errorf("fallback: option Probes is %d, allowed: 1 to 1000, or 0 for the default", o.Probes)
	}
	return nil
}
