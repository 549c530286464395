package lock_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"flashsale/internal/lock"
)

func TestObserverMissesWhatHappened(t *testing.T) {
	unavailable := fmt.Errorf("%w: connection refused", lock.ErrUnavailable)
	tests := []struct {
		name   string
		locker fake
		want   []string
	}{
		{"granted and released", fake{}, []string{"acquired", "held 2s"}},
		{"lease lost", fake{releaseErr: fmt.Errorf("x: %w", lock.ErrLost)}, []string{"acquired", "held 2s", "lost"}},
		{"release failed", fake{releaseErr: unavailable}, []string{"acquired", "held 2s", "release failed"}},
		{"contention", fake{acquireErr: fmt.Errorf("x: %w", lock.ErrNotAcquired)}, []string{"not_acquired"}},
		{"store away", fake{acquireErr: unavailable}, []string{"unavailable"}},
		{"caller gone", fake{acquireErr: fmt.Errorf("x: %w", context.Canceled)}, []string{"cancelled"}},
		{"caller out of time", fake{acquireErr: context.DeadlineExceeded}, []string{"cancelled"}},
		{"anything else", fake{acquireErr: errWork}, []string{"failed"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got []string
				locker := lock.Observe(&test.locker, lock.Observer{
					Acquired: func(_ string, _ time.Duration, outcome lock.Outcome, _ error) {
						got = append(got, string(outcome))
					},
					Released:      func(_ string, hold time.Duration) { got = append(got, fmt.Sprint("held ", hold)) },
					ReleaseFailed: func(string, error) { got = append(got, "release failed") },
					Lost:          func(string) { got = append(got, "lost") },
				})
				if lease, err := locker.Acquire(t.Context(), "item"); err == nil {
					time.Sleep(2 * time.Second)
					_ = lease.Release(t.Context())
					_ = lease.Release(t.Context()) // told once
				}
				if !slices.Equal(got, test.want) {
					t.Errorf("was told %q, want %q", got, test.want)
				}
			})
		})
	}
}

func TestObserverWithoutHooksPanics(t *testing.T) {
	for _, locker := range []*fake{{}, {acquireErr: errWork}, {releaseErr: lock.ErrLost}, {releaseErr: errWork}} {
		_ = lock.Do(t.Context(), lock.Observe(locker, lock.Observer{}), "item",
			func(context.Context, lock.Lease) error { return nil })
	}
}
