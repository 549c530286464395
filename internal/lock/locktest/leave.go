package locktest

import (
	"context"
	"sync/atomic"
	"time"

	"flashsale/internal/lock"
)

// moments is at how many of an acquisition its caller leaves.
const moments = 40

// callerLeaves lets callers leave while they acquire a free lock, and one that is
// held: at every point at which the lock looks at their context, and in between,
// when a request is under way. Whoever is granted the lock all the same releases it.
func (s *subject) callerLeaves() {
	holder, caller := s.pair(Setting{Wait: time.Minute})
	s.release(s.acquire(caller)) // so that it is connected
	start := time.Now()
	lease := s.acquire(caller)
	span := time.Since(start)
	s.release(lease)

	s.leaveAtEachMoment(caller, span)
	s.nothingLeft()
	if s.Excludes {
		lease := s.acquire(holder)
		s.leaveAtEachMoment(caller, span)
		if s.AcrossProcesses {
			s.stillHeld(s.New(s, Setting{Wait: lock.TryOnce}))
		}
		s.release(lease)
		s.nothingLeft()
	}
	s.release(s.acquire(holder))
}

// leaveAtEachMoment leaves acquisitions that would take about span if the lock is free.
func (s *subject) leaveAtEachMoment(locker lock.Locker, span time.Duration) {
	leave := func(ctx context.Context, want error) {
		if lease, err := locker.Acquire(ctx, s.key); err == nil {
			s.release(lease)
		} else {
			s.is(err, want)
		}
	}
	for look := range moments {
		ctx, cancel := context.WithCancel(s.Context())
		looked := &lookedAt{Context: ctx, cancel: cancel}
		looked.left.Store(int64(look) + 1)
		waited := time.AfterFunc(2*span+10*time.Millisecond, cancel) // it may wait without a look
		leave(looked, context.Canceled)
		waited.Stop()
		cancel()
		if looked.left.Load() > 0 { // it is never looked at so often
			break
		}
	}
	for moment := range moments {
		after := 2 * span * time.Duration(moment) / moments
		ctx, cancel := context.WithCancel(s.Context())
		leaving := time.AfterFunc(after, cancel)
		leave(ctx, context.Canceled)
		leaving.Stop()
		cancel()

		if !s.Overtakes {
			ctx, cancel := context.WithTimeout(s.Context(), after)
			leave(ctx, context.DeadlineExceeded)
			cancel()
		}
	}
}

// lookedAt is a context that ends when it is looked at for the last time that is
// left.
type lookedAt struct {
	context.Context
	cancel context.CancelFunc
	left   atomic.Int64
}

func (l *lookedAt) look() {
	if l.left.Add(-1) == 0 {
		l.cancel()
	}
}

func (l *lookedAt) Done() <-chan struct{} { l.look(); return l.Context.Done() }

func (l *lookedAt) Err() error { l.look(); return l.Context.Err() }
