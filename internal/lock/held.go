package lock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// Held is the frame of a lease in a store: it is extended while it is held, and
// told to be lost in time. A driver embeds it, adds a Fence, and knows how to
// extend and to end what it has in its store.
type Held struct {
	*Term
	o HeldOptions

	keeper *Keeper

	once sync.Once
	err  error
}

// HeldOptions say what is held. All are needed, but for GiveUp.
type HeldOptions struct {
	Driver, Key string    // for Key, and the errors
	Sent        time.Time // before the store was asked for the lease
	Length      time.Duration

	// Extend asks the store once to let the lease live on, and answers for how
	// long after it was called that holds; ErrLost: it is no more. Length is the
	// first such answer. It is called three times in each length.
	Extend func(ctx context.Context) (length time.Duration, err error)

	// End asks the store once to end the lease, and answers whether there was
	// one. It is called until it is answered, for at most Timeout.
	End     func(ctx context.Context) (there bool, err error)
	Timeout time.Duration

	// GiveUp is called when no End was answered.
	GiveUp func()

	// Turn ends with the lease, after it.
	Turn *Turn
}

// Hold starts to extend a lease. ctx lends its values alone.
func Hold(ctx context.Context, o HeldOptions) *Held {
	h := &Held{Term: NewTerm(o.Sent.Add(o.Length), o.Turn.Leave), o: o}
	h.keeper = h.KeepLater(ctx, o.Length, o.Extend)
	return h
}

// Key is the key that was asked for.
func (h *Held) Key() string { return h.o.Key }

// Release stops the extending, and waits until it has: an extension under way
// must not come after the end. The turn ends last, so that the next in line
// finds the lock free.
func (h *Held) Release(ctx context.Context) error {
	h.once.Do(func() {
		h.keeper.Stop()
		h.Stop()
		if err := h.end(ctx); err != nil {
			h.err = fmt.Errorf("%s: release %q: %w", h.o.Driver, h.o.Key, err)
		}
		h.o.Turn.Leave()
	})
	return h.err
}

// end ends the lease, in a bounded time that doesn't depend on ctx being alive.
// If that fails, the lock frees itself when its TTL has passed.
func (h *Held) end(ctx context.Context) error {
	lost := h.IsLost()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.o.Timeout)
	defer cancel()
	for unsure := false; ; unsure = true {
		there, err := h.o.End(ctx)
		switch {
		case err == nil && lost:
			return ErrLost
		case err == nil && (there || unsure && time.Now().Before(h.Until())): // or the unanswered attempt ended it
			return nil
		case err == nil:
			h.Lose()
			return ErrLost
		}
		select {
		case <-time.After(10*time.Millisecond + rand.N(20*time.Millisecond)):
		case <-ctx.Done():
			if h.o.GiveUp != nil {
				h.o.GiveUp()
			}
			if lost {
				return ErrLost
			}
			return Unavailable(err)
		}
	}
}

// Unavailable is ErrUnavailable with its cause. A driver's timeout may be a
// context error too, or look like contention; the caller's context is fine, so
// that isn't passed on.
func Unavailable(cause error) error {
	if errors.Is(cause, context.DeadlineExceeded) || errors.Is(cause, context.Canceled) || errors.Is(cause, ErrNotAcquired) {
		return fmt.Errorf("%w: %v", ErrUnavailable, cause)
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, cause)
}

// ContextError is ctx.Err(), also in the instant in which a request has failed
// by ctx's deadline and ctx itself is about to.
func ContextError(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}
