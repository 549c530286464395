package lock_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"flashsale/internal/lock"
)

func TestLeaseIsSizedWrongly(t *testing.T) {
	const ms, s = time.Millisecond, time.Second
	tests := []struct {
		name   string
		sizing lock.Sizing
		holds  []time.Duration
		want   time.Duration
	}{
		{"nothing observed", lock.Sizing{}, nil, 30 * s},
		{"slowest times the factor", lock.Sizing{}, []time.Duration{100 * ms, 100 * ms, 400 * ms}, 600 * ms},
		{"average times two", lock.Sizing{}, []time.Duration{400 * ms, 400 * ms, 400 * ms}, 800 * ms},
		{"another factor", lock.Sizing{Factor: 4}, []time.Duration{100 * ms, 400 * ms}, 1600 * ms},
		{"bounded below", lock.Sizing{}, []time.Duration{ms}, 100 * ms},
		{"bounded above", lock.Sizing{}, []time.Duration{60 * s}, 30 * s},
		{"own bounds, below", lock.Sizing{Min: s, Max: 2 * s}, []time.Duration{ms}, s},
		{"own bounds, above", lock.Sizing{Min: s, Max: 2 * s}, []time.Duration{9 * s}, 2 * s},
		{"whole milliseconds, up", lock.Sizing{Factor: 1}, []time.Duration{time.Second, time.Millisecond, 3001 * time.Microsecond}, s},
		{"a fraction of one", lock.Sizing{Factor: 2}, []time.Duration{200*ms + 1}, 401 * ms},
	}
	for _, test := range tests {
		if got := test.sizing.TTL(test.holds); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

// leased is a lock that knows its lease, and whether it was closed.
type leased struct {
	lock.None
	ttl    time.Duration
	closed bool
}

func (l *leased) Close() error {
	l.closed = true
	return nil
}

func TestLeaseDoesNotFollowTheHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var built []*leased
		adaptive, err := lock.NewAdaptive(lock.AdaptiveOptions{
			TTL:    10 * time.Second,
			Sizing: lock.Sizing{Window: 10},
			Build: func(ttl time.Duration) (lock.Locker, error) {
				built = append(built, &leased{ttl: ttl})
				return built[len(built)-1], nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		hold := func(times int, d time.Duration) {
			for range times {
				_ = lock.Do(t.Context(), adaptive, "item", func(context.Context, lock.Lease) error {
					time.Sleep(d)
					return nil
				})
			}
		}
		wants := func(when string, ttls ...time.Duration) {
			t.Helper()
			var got []time.Duration
			for _, l := range built {
				got = append(got, l.ttl/time.Millisecond)
			}
			for i := range ttls {
				ttls[i] /= time.Millisecond
			}
			if !slices.Equal(got, ttls) {
				t.Errorf("%s: leases of %d ms, want %d", when, got, ttls)
			}
		}
		const first, s = 10 * time.Second, time.Second

		hold(9, s)
		wants("too few to tell", first)
		hold(1, s)
		wants("ten", first, 2*s)
		hold(20, s)
		wants("nothing new", first, 2*s)
		hold(1, 4*s)
		wants("a slow one", first, 2*s, 6*s)
		hold(9, s)
		wants("it still counts", first, 2*s, 6*s)
		early, err := adaptive.Acquire(t.Context(), "item")
		if err != nil {
			t.Fatal(err)
		}
		hold(1, s)
		wants("it counts no more", first, 2*s, 6*s, 2*s)
		if adaptive.TTL() != 2*s {
			t.Errorf("TTL() = %v", adaptive.TTL())
		}

		if !built[0].closed || !built[1].closed || built[2].closed || built[3].closed {
			t.Errorf("closed: %v %v, held: %v, in use: %v", built[0].closed, built[1].closed, built[2].closed, built[3].closed)
		}
		for range 9 {
			hold(1, s)
		}
		time.Sleep(9 * s) // early holds for long: a new length while nobody uses the present one
		for range 2 {
			if err := early.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if !built[2].closed || !built[3].closed {
			t.Errorf("never closed: %v %v", built[2].closed, built[3].closed)
		}
		if err := adaptive.Close(); err != nil || len(built) != 5 || !built[4].closed {
			t.Errorf("not closed: %v", err)
		}
	})
}

func TestLengthThatCannotBeBuiltEndsTheLock(t *testing.T) {
	builds := 0
	adaptive, err := lock.NewAdaptive(lock.AdaptiveOptions{Build: func(time.Duration) (lock.Locker, error) {
		if builds++; builds > 1 {
			return nil, errWork
		}
		return lock.None{}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if err := lock.Do(t.Context(), adaptive, "item", func(context.Context, lock.Lease) error { return nil }); err != nil {
			t.Error(err)
		}
	}
	if builds < 2 {
		t.Error("it was never built again: the test shows nothing")
	}
}

func TestWrongSizingIsAccepted(t *testing.T) {
	build := func(time.Duration) (lock.Locker, error) { return lock.None{}, nil }
	for says, options := range map[string]lock.AdaptiveOptions{
		"option Build is needed":    {},
		"allowed: 0s <= Min <= Max": {Build: build, Sizing: lock.Sizing{Min: time.Minute}},
		"option Factor is 0.5":      {Build: build, Sizing: lock.Sizing{Factor: 0.5}},
		"option Window is 9":        {Build: build, Sizing: lock.Sizing{Window: 9}},
	} {
		if _, err := lock.NewAdaptive(options); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want it to say %q", err, says)
		}
	}
	if _, err := lock.NewAdaptive(lock.AdaptiveOptions{Build: func(time.Duration) (lock.Locker, error) { return nil, errWork }}); !errors.Is(err, errWork) {
		t.Errorf("got %v", err)
	}
}
