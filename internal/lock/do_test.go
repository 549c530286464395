package lock_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"flashsale/internal/lock"
)

// fake is a Locker and its only Lease.
type fake struct {
	acquireErr, releaseErr error
	lost                   chan struct{}
	released               []context.Context
	aliveAtRelease         bool
}

func (f *fake) Acquire(context.Context, string) (lock.Lease, error) {
	if f.acquireErr != nil {
		return nil, f.acquireErr
	}
	return f, nil
}
func (f *fake) Key() string           { return "item" }
func (f *fake) Fence() uint64         { return 7 }
func (f *fake) Lost() <-chan struct{} { return f.lost }
func (f *fake) Release(ctx context.Context) error {
	f.released = append(f.released, ctx)
	f.aliveAtRelease = ctx.Err() == nil
	return f.releaseErr
}

var errWork = errors.New("the work's own error")

func TestDoAnswersWithTheWorkAlone(t *testing.T) {
	tests := []struct {
		name   string
		locker fake
		work   error
		want   error
	}{
		{"the work succeeds", fake{}, nil, nil},
		{"a failed release fails the work", fake{releaseErr: lock.ErrUnavailable}, nil, nil},
		{"a lease lost at the last moment fails the work", fake{releaseErr: lock.ErrLost}, nil, nil},
		{"a failed release hides the work's error", fake{releaseErr: lock.ErrUnavailable}, errWork, errWork},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := lock.Do(t.Context(), &test.locker, "item", func(context.Context, lock.Lease) error { return test.work })
			if err != test.want {
				t.Errorf("got %v, want %v", err, test.want)
			}
			if n := len(test.locker.released); n != 1 {
				t.Errorf("released %d times", n)
			}
		})
	}
}

func TestDoWorksWithoutTheLock(t *testing.T) {
	locker := &fake{acquireErr: lock.ErrNotAcquired}
	err := lock.Do(t.Context(), locker, "item", func(context.Context, lock.Lease) error {
		t.Error("the work ran")
		return nil
	})
	if err != lock.ErrNotAcquired || len(locker.released) != 0 {
		t.Errorf("got %v, released %d times", err, len(locker.released))
	}
}

func TestDoReleasesWithTheContextOfACancelledRequest(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	locker := &fake{}
	err := lock.Do(ctx, locker, "item", func(ctx context.Context, _ lock.Lease) error {
		cancel()
		<-ctx.Done()
		return ctx.Err()
	})
	if !errors.Is(err, context.Canceled) || errors.Is(err, lock.ErrLost) {
		t.Errorf("got %v, want the request's cancellation alone", err)
	}
	if !locker.aliveAtRelease {
		t.Error("the release had a dead context")
	}
	if _, bounded := locker.released[0].Deadline(); !bounded {
		t.Error("the release may take for ever")
	}
}

func TestDoKeepsTheLockWhenTheWorkNeverReturns(t *testing.T) {
	ends := map[string]func(){
		"panic":  func() { panic("at work") },
		"goexit": runtime.Goexit,
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			locker := &fake{lost: make(chan struct{})}
			recovered := make(chan any)
			go func() {
				defer func() { recovered <- recover() }()
				_ = lock.Do(t.Context(), locker, "item", func(context.Context, lock.Lease) error { end(); return nil })
			}()
			if got := <-recovered; (got != nil) != (name == "panic") {
				t.Errorf("recovered %v", got)
			}
			if len(locker.released) != 1 {
				t.Errorf("released %d times", len(locker.released))
			}
		})
	}
}

func TestDoHidesALoss(t *testing.T) {
	tests := []struct {
		name     string
		work     func(ctx context.Context) error
		lost     bool
		original error
	}{
		{"the work stops because of it", context.Context.Err, true, context.Canceled},
		{"the work says so itself", context.Cause, true, nil},
		{"the work was done all the same", func(context.Context) error { return nil }, false, nil},
		{"the work failed by itself", func(context.Context) error { return errWork }, false, errWork},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				locker := &fake{lost: make(chan struct{}), releaseErr: lock.ErrLost}
				err := lock.Do(t.Context(), locker, "item", func(ctx context.Context, _ lock.Lease) error {
					time.Sleep(time.Hour)
					if ctx.Err() != nil {
						t.Error("cancelled before the loss")
					}
					close(locker.lost)
					<-ctx.Done()
					return test.work(ctx)
				})
				if errors.Is(err, lock.ErrLost) != test.lost {
					t.Errorf("got %v, is ErrLost: %v, want %v", err, !test.lost, test.lost)
				}
				if test.original != nil && !errors.Is(err, test.original) {
					t.Errorf("%v hides %v", err, test.original)
				}
			})
		})
	}
}
