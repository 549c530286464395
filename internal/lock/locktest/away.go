package locktest

import (
	"context"
	"testing"
	"time"

	"flashsale/internal/lock"
)

// Server is the only one of a lock, and a test's own.
type Server interface {
	Start(ctx context.Context) error // again after Kill, with its data
	Kill()
}

// Away is a lock whose only server goes away.
type Away[S Server] struct {
	// Server is a running one; it is stopped by t.
	Server func(t testing.TB) S

	// Open makes a Locker on it whose requests take at most timeout.
	Open func(t testing.TB, server S, s Setting, timeout time.Duration) lock.Locker

	// Waits says whether the server knows of somebody who waits for "item", as
	// often as it is asked.
	Waits func(t testing.TB, server S) func() bool

	// Returns says that a lease survives a server that comes back soon.
	Returns bool
}

// Run runs the tests.
func (a Away[S]) Run(t *testing.T) {
	if a.Returns {
		t.Run("a short absence ends the lease", a.short)
	}
	t.Run("nobody is told that the server stays away", a.long)
	t.Run("a waiter waits for a server that is away", a.whileWaiting)
}

func (a Away[S]) short(t *testing.T) {
	server := a.Server(t)
	locker := a.Open(t, server, Setting{TTL: time.Minute, Wait: lock.TryOnce}, patience)
	lease := Acquire(t, locker)
	server.Kill()
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-lease.Lost():
		t.Fatal("lost within its TTL")
	default:
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Errorf("release: %v", err)
	}
	Next(t, locker, lease)
}

func (a Away[S]) long(t *testing.T) {
	const ttl, timeout = 3 * time.Second, time.Second
	server := a.Server(t)
	setting := Setting{TTL: ttl, Wait: lock.TryOnce}
	locker, other := a.Open(t, server, setting, timeout), a.Open(t, server, setting, timeout)
	lease := Acquire(t, locker)
	server.Kill()
	Bounded(t, patience, "acquire", func() {
		_, err := other.Acquire(t.Context(), "item")
		Is(t, err, lock.ErrUnavailable)
	})
	Bounded(t, ttl+patience/2, "the loss", func() { <-lease.Lost() })
	Bounded(t, patience, "release", func() { Is(t, lease.Release(t.Context()), lock.ErrLost) })
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	Next(t, locker, lease)
}

func (a Away[S]) whileWaiting(t *testing.T) {
	server := a.Server(t)
	setting := Setting{TTL: 2 * time.Second, Wait: time.Minute}
	holder, waiter := a.Open(t, server, setting, time.Second), a.Open(t, server, setting, time.Second)
	waits := a.Waits(t, server)
	lease := Acquire(t, holder)
	failed := make(chan error, 1)
	go func() {
		_, err := waiter.Acquire(t.Context(), "item")
		failed <- err
	}()
	for deadline := time.Now().Add(patience); !waits(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("nobody waits")
		}
	}
	server.Kill()
	Bounded(t, 2*patience, "the wait", func() { Is(t, <-failed, lock.ErrUnavailable) })
	if err := lease.Release(t.Context()); err == nil {
		t.Error("a release that was not answered is none")
	}
}
