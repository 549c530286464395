package fallback_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"flashsale/internal/lock"
	"flashsale/internal/lock/fallback"
	"flashsale/internal/lock/locktest"
)

// store is a lock whose answers a test decides on. It counts the questions.
type store struct {
	lock.Locker
	answer error // nil: Locker's
	asked  int
}

func (s *store) Acquire(ctx context.Context, key string) (lock.Lease, error) {
	s.asked++
	if s.answer != nil {
		return nil, s.answer
	}
	return s.Locker.Acquire(ctx, key)
}

var errDown = fmt.Errorf("%w: connection refused", lock.ErrUnavailable)

func newStore() *store { return &store{Locker: lock.NewLocal(lock.LocalOptions{})} }

func build(t testing.TB, l lock.Locker, o fallback.Options) *fallback.Fallback {
	t.Helper()
	f, err := fallback.New(l, o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func acquire(t testing.TB, l lock.Locker) lock.Lease {
	t.Helper()
	lease, err := l.Acquire(t.Context(), "item")
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func release(t testing.TB, lease lock.Lease) {
	t.Helper()
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestOpenBreakerAsksTheStore(t *testing.T) {
	for name, mode := range map[string]fallback.Mode{"reject": fallback.Reject, "degrade": fallback.Degrade} {
		t.Run(name, func(t *testing.T) {
			s := newStore()
			s.answer = errDown
			f := build(t, s, fallback.Options{Mode: mode, Failures: 2, Pause: time.Hour})
			for i := range 10 {
				lease, err := f.Acquire(t.Context(), "item")
				switch degraded := mode == fallback.Degrade && i > 0; { // the second failure opens it
				case degraded && err != nil:
					t.Fatal(err)
				case degraded:
					release(t, lease)
				default:
					locktest.Is(t, err, lock.ErrUnavailable)
				}
			}
			if s.asked != 2 {
				t.Errorf("the store was asked %d times, want 2", s.asked)
			}
		})
	}
}

// What isn't the store's fault says nothing about the store.
func TestContentionOrACancelledCallerOpensTheBreaker(t *testing.T) {
	for name, answer := range map[string]error{
		"contention":     fmt.Errorf("held: %w", lock.ErrNotAcquired),
		"loss":           lock.ErrLost,
		"cancelled":      context.Canceled,
		"deadline":       context.DeadlineExceeded,
		"another's bug":  errors.New("no such command"),
		"nothing at all": nil,
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore()
			s.answer = answer
			f := build(t, s, fallback.Options{Failures: 1, Pause: time.Hour})
			for range 5 {
				lease, err := f.Acquire(t.Context(), "item")
				if !errors.Is(err, answer) {
					t.Fatalf("got %v, want %v", err, answer)
				}
				if err == nil {
					release(t, lease)
				}
			}
			if s.asked != 5 || f.State() != fallback.Closed {
				t.Errorf("asked %d of 5 times, the breaker is %s", s.asked, f.State())
			}
		})
	}
}

// A driver's timeout is a deadline exceeded as well, but the store's.
func TestTimeoutOfTheStorePassesForTheCallers(t *testing.T) {
	s := newStore()
	s.answer = fmt.Errorf("%w: %w", lock.ErrUnavailable, context.DeadlineExceeded)
	f := build(t, s, fallback.Options{Failures: 1, Pause: time.Hour})
	_, _ = f.Acquire(t.Context(), "item")
	if f.State() != fallback.Open {
		t.Errorf("the breaker is %s", f.State())
	}
}

func TestAnswerBetweenFailuresDoesNotCount(t *testing.T) {
	s := newStore()
	f := build(t, s, fallback.Options{Failures: 2, Pause: time.Hour})
	for _, answer := range []error{errDown, lock.ErrNotAcquired, errDown, nil, errDown} {
		s.answer = answer
		if lease, err := f.Acquire(t.Context(), "item"); err == nil {
			release(t, lease)
		}
	}
	if f.State() != fallback.Closed {
		t.Errorf("never two failures in a row, but the breaker is %s", f.State())
	}
}

func TestBreakerStaysOpenForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var changes []string
		s := newStore()
		s.answer = errDown
		f := build(t, s, fallback.Options{
			Failures: 1, Probes: 2, Pause: time.Second,
			Changed: func(from, to fallback.State) { changes = append(changes, fmt.Sprintf("%s>%s", from, to)) },
		})
		ask := func(want error, asked int) {
			t.Helper()
			lease, err := f.Acquire(t.Context(), "item")
			if !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
			if err == nil {
				release(t, lease)
			}
			if s.asked != asked {
				t.Errorf("asked %d times, want %d", s.asked, asked)
			}
		}
		ask(lock.ErrUnavailable, 1) // opens
		ask(lock.ErrUnavailable, 1)
		time.Sleep(time.Second + 1)
		ask(lock.ErrUnavailable, 2) // a probe, in vain
		ask(lock.ErrUnavailable, 2)
		time.Sleep(time.Second + 1)
		s.answer = context.Canceled
		ask(context.Canceled, 3) // a probe that says nothing; the next caller is one too
		s.answer = lock.ErrNotAcquired
		ask(lock.ErrNotAcquired, 4)
		s.answer = nil
		ask(nil, 5)
		ask(nil, 6)
		want := []string{"closed>open", "open>half_open", "half_open>open", "open>half_open", "half_open>closed"}
		if !slices.Equal(changes, want) {
			t.Errorf("changes %q, want %q", changes, want)
		}
	})
}

// While a probe is under way, the others don't wait for it.
func TestHalfOpenBreakerLetsEverybodyTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{store: newStore(), under: make(chan struct{}), answer: make(chan error)}
		f := build(t, s, fallback.Options{Mode: fallback.Degrade, Failures: 1, Pause: time.Second})
		go func() { <-s.under; s.answer <- errDown }()
		release(t, acquire(t, f)) // opens, and degrades at once
		time.Sleep(time.Second + 1)

		var all sync.WaitGroup
		all.Go(func() {
			lease, err := f.Acquire(t.Context(), "probe")
			if err != nil || lease.Fence() == 0 {
				t.Errorf("the probe got %v", err)
				return
			}
			release(t, lease)
		})
		<-s.under
		if f.State() != fallback.HalfOpen {
			t.Errorf("the breaker is %s", f.State())
		}
		if lease := acquire(t, f); lease.Fence() != 0 {
			t.Error("a second caller was let through")
		} else {
			release(t, lease)
		}
		s.answer <- nil
		all.Wait()
		if f.State() != fallback.Closed {
			t.Errorf("the breaker is %s", f.State())
		}
	})
}

// slow is a store that tells when it is asked and waits for what to answer.
type slow struct {
	*store
	under  chan struct{}
	answer chan error
}

func (s *slow) Acquire(ctx context.Context, key string) (lock.Lease, error) {
	s.under <- struct{}{}
	if err := <-s.answer; err != nil {
		return nil, err
	}
	return s.store.Acquire(ctx, key)
}

func TestPanicOfAProbeKeepsTheBreakerHalfOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.answer = errDown
		f := build(t, s, fallback.Options{Mode: fallback.Degrade, Failures: 1, Pause: time.Second})
		release(t, acquire(t, f))
		time.Sleep(time.Second + 1)
		sane := s.Locker
		s.answer, s.Locker = nil, nil
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic was hidden")
				}
			}()
			_, _ = f.Acquire(t.Context(), "item")
		}()
		s.Locker = sane
		if lease := acquire(t, f); lease.Fence() == 0 {
			t.Error("degraded, though the store is there")
		} else {
			release(t, lease)
		}
	})
}

func TestWrongOptionIsAccepted(t *testing.T) {
	for name, wrong := range map[string]fallback.Options{
		"mode":                {Mode: 7},
		"a lock for nothing":  {To: lock.None{}},
		"failures":            {Failures: -1},
		"pause":               {Pause: -1},
		"probes":              {Probes: -1},
		"more than it counts": {Probes: 1 << 40},
	} {
		if _, err := fallback.New(newStore(), wrong); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
