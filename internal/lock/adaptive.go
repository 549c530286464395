package lock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// Adaptive sizes the leases of a lock by how long they have really been held: a
// lease that is too short is lost at work, one that is too long keeps everybody
// out for that long when its holder has crashed.
//
// Protects against:  a guessed TTL; work that gets slower or quicker while the program runs.
// Still fails when:  a run is slower than all that were observed, by more than the safety factor.
// Fixed by:          a lock that extends its leases; then this decides how soon a crash is noticed.
type Adaptive struct {
	build  func(ttl time.Duration) (Locker, error)
	sizing Sizing

	mu      sync.Mutex
	current *sized
	holds   []time.Duration // the last ones, in any order
	next    int             // the one that is overwritten next
}

// AdaptiveOptions are the options of NewAdaptive. Build is needed.
type AdaptiveOptions struct {
	// Build makes the lock with leases of such a length, on the same store each
	// time. It is called at first, and whenever the length changes.
	Build func(ttl time.Duration) (Locker, error)

	// TTL is the first length, until ten holds have been observed; 0 = Max.
	TTL time.Duration

	Sizing
}

// Sizing says how long a lease should be; the zero value is the default.
type Sizing struct {
	Min, Max time.Duration // bounds; 0 = 100 ms and 30 s
	Factor   float64       // of safety, on the slowest hold; 0 = 1.5, at least 1
	Window   int           // how many holds count, the last ones; 0 = 100, at least 10
}

// enough holds are worth a decision.
const enough = 10

// TTL is the longer of the slowest hold times the safety factor and the average
// times two, in whole milliseconds within the bounds. Without holds it is Max.
func (s Sizing) TTL(holds []time.Duration) time.Duration {
	s = s.withDefaults()
	if len(holds) == 0 {
		return s.Max
	}
	var slowest, sum time.Duration
	for _, hold := range holds {
		slowest = max(slowest, hold)
		sum += hold
	}
	ttl := max(time.Duration(float64(slowest)*s.Factor), 2*sum/time.Duration(len(holds)))
	ttl = (ttl + time.Millisecond - 1).Truncate(time.Millisecond)
	return min(max(ttl, s.Min), s.Max)
}

func (s Sizing) withDefaults() Sizing {
	if s.Min == 0 {
		s.Min = 100 * time.Millisecond
	}
	if s.Max == 0 {
		s.Max = 30 * time.Second
	}
	if s.Factor == 0 {
		s.Factor = 1.5
	}
	if s.Window == 0 {
		s.Window = 100
	}
	return s
}

func (s Sizing) validate() error {
	switch {
	case s.Min < 0 || s.Max < s.Min:
		return fmt.Errorf("lock: options Min and Max are %v and %v, allowed: 0s <= Min <= Max", s.Min, s.Max)
	case s.Factor < 1:
		return fmt.Errorf("lock: option Factor is %v, allowed: 1 or more", s.Factor)
	case s.Window < enough:
		return fmt.Errorf("lock: option Window is %d, allowed: %d or more", s.Window, enough)
	}
	return nil
}

// NewAdaptive makes an Adaptive. Close it when its leases are released.
func NewAdaptive(options AdaptiveOptions) (*Adaptive, error) {
	a := &Adaptive{build: options.Build, sizing: options.Sizing.withDefaults()}
	if a.build == nil {
		return nil, errors.New("lock: option Build is needed")
	}
	if err := a.sizing.validate(); err != nil {
		return nil, err
	}
	ttl := options.TTL
	if ttl == 0 {
		ttl = a.sizing.Max
	}
	locker, err := a.build(ttl)
	if err != nil {
		return nil, err
	}
	a.current = &sized{Locker: locker, ttl: ttl}
	return a, nil
}

var _ Locker = (*Adaptive)(nil)

// Acquire asks the lock with leases of the present length.
func (a *Adaptive) Acquire(ctx context.Context, key string) (Lease, error) {
	used := a.enter()
	lease, err := used.Acquire(ctx, key)
	if err != nil {
		a.leave(used)
		return nil, err
	}
	return &adaptiveLease{Lease: lease, adaptive: a, used: used, granted: time.Now()}, nil
}

// TTL is the present length of a lease.
func (a *Adaptive) TTL() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.current.ttl
}

// Close closes the lock that is in use, if it can be closed.
func (a *Adaptive) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.current.close()
}

// sized is the lock with leases of one length. One that was replaced is closed
// when nobody waits for it or holds it any more.
type sized struct {
	Locker
	ttl      time.Duration
	users    int
	replaced bool
}

func (s *sized) close() error {
	if c, ok := s.Locker.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

func (s *sized) closeUnused() {
	if s.replaced && s.users == 0 {
		_ = s.close()
	}
}

func (a *Adaptive) enter() *sized {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.current.users++
	return a.current
}

func (a *Adaptive) leave(used *sized) {
	a.mu.Lock()
	defer a.mu.Unlock()
	used.users--
	used.closeUnused()
}

// observe takes a hold into account. A lease grows at once, and shrinks when
// half its length would do, so that it isn't changed all the time.
func (a *Adaptive) observe(hold time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.holds) < a.sizing.Window {
		a.holds = append(a.holds, hold)
	} else {
		a.holds[a.next] = hold
		a.next = (a.next + 1) % len(a.holds)
	}
	ttl := a.sizing.TTL(a.holds)
	if len(a.holds) < enough || ttl <= a.current.ttl && ttl > a.current.ttl/2 {
		return
	}
	locker, err := a.build(ttl)
	if err != nil {
		return // the present length goes on
	}
	old := a.current
	a.current = &sized{Locker: locker, ttl: ttl}
	old.replaced = true
	old.closeUnused()
}

type adaptiveLease struct {
	Lease
	adaptive *Adaptive
	used     *sized
	granted  time.Time
	once     sync.Once
}

// Release releases the lease, and takes into account how long it was held,
// lost or not.
func (l *adaptiveLease) Release(ctx context.Context) error {
	held := time.Since(l.granted)
	err := l.Lease.Release(ctx)
	l.once.Do(func() {
		l.adaptive.observe(held)
		l.adaptive.leave(l.used)
	})
	return err
}
