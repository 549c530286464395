package lock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"flashsale/internal/lock"
	"flashsale/internal/lock/locktest"
)

// shelf is a store of one lease, by the clock of a test, whose answers fail as
// the test says.
type shelf struct {
	mu                 sync.Mutex
	ends               time.Time     // of the lease in the store
	later              time.Duration // than its holder thinks the lease ends
	length, takes      time.Duration
	extendErr, endErr  error // what is answered, if anything
	endsAllTheSame     bool  // though the answer is an error
	extends, endsAsked int
	endedAfter         int  // extensions
	deaf               bool // an extension doesn't end with its context
	gaveUp             bool
}

func (s *shelf) extend(ctx context.Context) (time.Duration, error) {
	asked := time.Now()
	if s.deaf {
		ctx = context.WithoutCancel(ctx)
	}
	select {
	case <-time.After(s.takes): // never changed
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.extends++
	switch {
	case s.extendErr != nil:
		return 0, s.extendErr
	case asked.After(s.ends):
		return 0, lock.ErrLost
	}
	s.ends = asked.Add(s.length)
	return s.length, nil
}

func (s *shelf) end(ctx context.Context) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endsAsked++
	s.endedAfter = s.extends
	there := time.Now().Before(s.ends)
	if s.endErr == nil || s.endsAllTheSame {
		s.ends = time.Time{}
	}
	err := s.endErr
	if s.endsAllTheSame {
		s.endErr = nil // the next attempt is answered
	}
	return there, err
}

// now changes or reads the shelf.
func (s *shelf) now(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
}

const (
	length  = 9 * time.Second
	timeout = time.Second
)

var errShelf = errors.New("the shelf is gone")

func hold(t *testing.T, s *shelf, q *lock.Queue) *lock.Held {
	t.Helper()
	turn, err := q.Enter(t.Context(), "item", 0)
	if err != nil {
		t.Fatal(err)
	}
	s.length, s.ends = length, time.Now().Add(length+s.later)
	return lock.Hold(t.Context(), lock.HeldOptions{
		Driver: "shelf", Key: "item", Sent: time.Now(), Length: length,
		Extend: s.extend, End: s.end, Timeout: timeout, GiveUp: func() { s.gaveUp = true }, Turn: turn,
	})
}

// lostAfter is how long it takes until the holder is told.
func lostAfter(h *lock.Held) time.Duration {
	start := time.Now()
	<-h.Lost()
	return time.Since(start)
}

// free says whether the next in line would find the lock free.
func free(t *testing.T, q *lock.Queue) bool {
	t.Helper()
	turn, err := q.Enter(t.Context(), "item", 0)
	if err == nil {
		turn.Leave()
	}
	return err == nil
}

func TestHeldIsExtendedUntilItsRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q lock.Queue
		s := &shelf{}
		h := hold(t, s, &q)
		time.Sleep(20 * length)
		if h.IsLost() || free(t, &q) {
			t.Error("it was lost")
		}
		if err := h.Release(t.Context()); err != nil {
			t.Error(err)
		}
		var extends, more int
		s.now(func() { extends = s.extends })
		if extends < 40 || extends > 80 {
			t.Errorf("%d extensions in 20 lengths, want about 3 each", extends)
		}
		time.Sleep(10 * length)
		s.now(func() { more = s.extends - extends })
		if more != 0 || h.IsLost() || !free(t, &q) {
			t.Errorf("%d extensions after the release, lost: %v, free: %v", more, h.IsLost(), free(t, &q))
		}
	})
}

// The end counts from before the last extension was sent, not from its answer.
func TestHeldCountsFromBeforeAnExtensionWasSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q lock.Queue
		s := &shelf{takes: 2 * time.Second}
		h := hold(t, s, &q)
		time.Sleep(length/3 + 3*time.Second) // sent after a third of length, answered 2 s later
		s.now(func() { s.extendErr = errShelf })
		if took := lostAfter(h); took != length-3*time.Second {
			t.Errorf("lost %v later, want %v", took, length-3*time.Second)
		}
		locktest.Is(t, h.Release(t.Context()), lock.ErrLost)
	})
}

func TestHeldSurvivesExtensionsThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q lock.Queue
		s := &shelf{extendErr: errShelf}
		h := hold(t, s, &q)
		time.Sleep(length * 9 / 10)
		s.now(func() {
			if s.extends < 5 || s.extends > 50 {
				t.Errorf("%d attempts", s.extends)
			}
			s.extendErr = nil
		})
		time.Sleep(5 * length)
		if err := h.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestHeldIsLostWhenTheStoreSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q lock.Queue
		s := &shelf{}
		h := hold(t, s, &q)
		s.now(func() { s.ends = time.Time{} })
		if took := lostAfter(h); took > length/3 {
			t.Errorf("told after %v", took)
		}
		synctest.Wait()
		if !free(t, &q) {
			t.Error("the turn of who lost the lease lasts")
		}
		locktest.Is(t, h.Release(t.Context()), lock.ErrLost)
		locktest.Is(t, h.Release(t.Context()), lock.ErrLost)
		if s.endsAsked != 1 {
			t.Errorf("ended %d times", s.endsAsked)
		}
	})
}

// An extension after a loss would keep out who comes next.
func TestHeldIsNotExtendedAfterItsLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q lock.Queue
		s := &shelf{extendErr: errShelf}
		h := hold(t, s, &q)
		<-h.Lost()
		synctest.Wait()
		var before, after int
		s.now(func() { before, s.extendErr = s.extends, nil })
		time.Sleep(5 * length)
		s.now(func() { after = s.extends })
		if after != before {
			t.Errorf("%d extensions after the loss", after-before)
		}
		locktest.Is(t, h.Release(t.Context()), lock.ErrLost)
	})
}

// An extension under way when the lease is released could otherwise arrive after
// its end.
func TestHeldIsReleasedAfterAnExtensionUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q lock.Queue
		s := &shelf{takes: time.Second, deaf: true}
		h := hold(t, s, &q)
		time.Sleep(length/3 + s.takes/2)
		if err := h.Release(t.Context()); err != nil {
			t.Error(err)
		}
		s.now(func() {
			if s.extends != 1 || s.endedAfter != 1 {
				t.Errorf("%d extensions, %d of them before the end", s.extends, s.endedAfter)
			}
		})
		time.Sleep(s.takes)
	})
}

func TestReleaseOfHeld(t *testing.T) {
	for name, test := range map[string]struct {
		shelf  func() *shelf
		stolen bool
		after  time.Duration
		want   error
		gaveUp bool
	}{
		"answered":                            {shelf: func() *shelf { return &shelf{} }},
		"a lost answer is no loss":            {shelf: func() *shelf { return &shelf{endErr: errShelf, endsAllTheSame: true} }},
		"nothing there is a loss":             {shelf: func() *shelf { return &shelf{} }, stolen: true, want: lock.ErrLost},
		"never answered":                      {shelf: func() *shelf { return &shelf{endErr: errShelf} }, want: lock.ErrUnavailable, gaveUp: true},
		"never answered: a context's error":   {shelf: func() *shelf { return &shelf{endErr: context.DeadlineExceeded} }, want: lock.ErrUnavailable, gaveUp: true},
		"lost, and never answered":            {shelf: func() *shelf { return &shelf{extendErr: errShelf, endErr: errShelf} }, after: 2 * length, want: lock.ErrLost, gaveUp: true},
		"lost, and there all the same":        {shelf: func() *shelf { return &shelf{extendErr: errShelf, later: time.Second} }, after: length + time.Millisecond, want: lock.ErrLost},
		"its end may have come by itself too": {shelf: func() *shelf { return &shelf{extendErr: errShelf, endErr: errShelf, endsAllTheSame: true} }, after: length - time.Nanosecond, want: lock.ErrLost},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var q lock.Queue
				s := test.shelf()
				h := hold(t, s, &q)
				time.Sleep(test.after)
				if test.stolen {
					s.now(func() { s.ends = time.Time{} })
				}
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				start := time.Now()
				err := h.Release(ctx)
				if test.want == nil && err != nil {
					t.Errorf("release: %v", err)
				} else if test.want != nil {
					locktest.Is(t, err, test.want)
				}
				if took := time.Since(start); took > timeout {
					t.Errorf("it took %v", took)
				}
				if s.gaveUp != test.gaveUp {
					t.Errorf("gave up: %v", s.gaveUp)
				}
				if !free(t, &q) {
					t.Error("the turn lasts")
				}
				if lost := h.IsLost(); lost != (test.want == lock.ErrLost) {
					t.Errorf("lost: %v", lost)
				}
			})
		})
	}
}

func TestTimingSaysWhatIsAllowed(t *testing.T) {
	defaults := lock.Timing{}.WithDefaults(time.Second)
	if defaults.TTL != 30*time.Second || defaults.Wait != lock.DefaultWait || defaults.Drift != 302*time.Millisecond || defaults.Timeout != 2*time.Second {
		t.Errorf("defaults: %+v", defaults)
	}
	if ttl := (lock.Timing{TTL: 1500 * time.Millisecond}).WithDefaults(time.Second).TTL; ttl != 2*time.Second {
		t.Errorf("1.5 s in whole seconds: %v", ttl)
	}
	for name, wrong := range map[string]lock.Timing{
		"TTL": {TTL: -time.Second}, "short TTL": {TTL: time.Nanosecond}, "long TTL": {TTL: 2 * time.Hour},
		"Drift": {TTL: 4 * time.Second, Drift: 2 * time.Second}, "negative Drift": {Drift: -1}, "Timeout": {Timeout: -1},
	} {
		if err := wrong.WithDefaults(1).Validate("shelf", time.Millisecond); err == nil {
			t.Errorf("%s is allowed", name)
		}
	}
}
