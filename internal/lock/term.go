package lock

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"
)

// Term is how long a lease in a store lasts, by the holder's clock. Unless its
// end is moved it comes by itself, a little before the store lets the lock go.
type Term struct {
	until  time.Time
	expiry *time.Timer
	lost   chan struct{}
	onLoss func()
	once   sync.Once // of the loss
}

// NewTerm starts the clock. onLoss is called when the end has come before Stop;
// it may be nil.
func NewTerm(until time.Time, onLoss func()) *Term {
	t := &Term{until: until, lost: make(chan struct{}), onLoss: onLoss}
	t.expiry = time.AfterFunc(time.Until(until), t.Lose)
	return t
}

// Lost is closed when the end has come.
func (t *Term) Lost() <-chan struct{} { return t.lost }

// IsLost says whether the end has come.
func (t *Term) IsLost() bool {
	select {
	case <-t.lost:
		return true
	default:
		return false
	}
}

// Lose is the end, ahead of time: the store says so.
func (t *Term) Lose() {
	t.once.Do(func() {
		close(t.lost)
		if t.onLoss != nil {
			t.onLoss()
		}
	})
}

// Stop stops the clock, since the lease is being released.
func (t *Term) Stop() { t.expiry.Stop() }

// Until is the end. It is not for calls while Keep runs.
func (t *Term) Until() time.Time { return t.until }

// Keep moves the end on, three times in each length, until ctx is done or the
// lease is lost. extend says for how long after it was asked the store keeps
// the lease, or that it is no more: ErrLost. Any other error isn't a loss: the
// next attempt may succeed, and the clock, which counts from before the last
// successful one was sent, says when it is too late for that.
func (t *Term) Keep(ctx context.Context, length time.Duration, extend func(context.Context) (time.Duration, error)) {
	t.keep(ctx, length, length/3, extend)
}

func (t *Term) keep(ctx context.Context, length, first time.Duration, extend func(context.Context) (time.Duration, error)) {
	next := time.NewTimer(first)
	defer next.Stop()
	for {
		select {
		case <-next.C:
		case <-t.lost:
			return
		case <-ctx.Done():
			return
		}
		sent := time.Now()
		longer, err := extend(ctx)
		switch {
		case err == nil:
			length = longer
			t.until = sent.Add(length)
			t.expiry.Reset(time.Until(t.until))
			next.Reset(length / 3)
		case errors.Is(err, ErrLost):
			t.Lose()
			return
		default:
			retry := min(max(length/30, 2*time.Millisecond), time.Second)
			next.Reset(retry/2 + rand.N(retry/2))
		}
	}
}

// Keeper is Keep in the background. It is a mere timer until there is something
// to extend: most leases are released before.
type Keeper struct {
	term   *Term
	length time.Duration
	extend func(context.Context) (time.Duration, error)
	first  *time.Timer

	mu      sync.Mutex
	values  context.Context
	cancel  context.CancelFunc // of the goroutine, once there is one
	done    chan struct{}      // closed when it has ended
	stopped bool
}

// KeepLater starts a Keeper, which extends for the first time when two thirds of
// length are left. ctx lends its values alone.
func (t *Term) KeepLater(ctx context.Context, length time.Duration, extend func(context.Context) (time.Duration, error)) *Keeper {
	k := &Keeper{term: t, length: length, extend: extend, values: ctx}
	k.first = time.AfterFunc(time.Until(t.until)-length*2/3, k.run)
	return k
}

func (k *Keeper) run() {
	k.mu.Lock()
	if k.stopped {
		k.mu.Unlock()
		return
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(k.values))
	defer cancel()
	done := make(chan struct{})
	defer close(done)
	k.cancel, k.done = cancel, done
	k.mu.Unlock()
	k.term.keep(ctx, k.length, 0, k.extend)
}

// Stop stops the extending, and waits until it has: none is under way after it.
func (k *Keeper) Stop() {
	k.first.Stop()
	k.mu.Lock()
	k.stopped = true
	cancel, done := k.cancel, k.done
	k.mu.Unlock()
	if cancel != nil {
		cancel()
		<-done
	}
}
