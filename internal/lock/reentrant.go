package lock

import (
	"context"
	"fmt"
	"sync"
)

// Reentrant makes a lock that its owner may acquire again while holding it. The
// lock is released when the owner has released it as often as acquired.
//
// Protects against:  a caller that waits for itself, because what it calls acquires the same lock.
// Still fails when:  the owner works in two processes: the second one waits for the first, as for anybody else.
// Fixed by:          acquiring once, at the outermost level, and handing the lease down.
//
// The owner is named, since a goroutine has no identity. The depth is counted
// here, beside the owner, and not in a hash in the store: a nested acquisition
// costs nothing then, it works on every Locker, and the lock stays guarded by a
// token that only this process knows, where a hash would let in whoever can say
// the owner's name, such as the same owner's retry on another machine.
type Reentrant struct {
	locker Locker

	mu   sync.Mutex
	held map[ownedKey]*hold
}

type ownedKey struct{ owner, key string }

// hold is the one acquisition that an owner's leases of a key share.
type hold struct {
	depth int           // under Reentrant.mu: leases, and callers that wait for one
	ready chan struct{} // closed when lease and err are set
	lease Lease
	err   error
}

// NewReentrant makes a Reentrant of the locks of locker.
func NewReentrant(locker Locker) *Reentrant {
	return &Reentrant{locker: locker, held: make(map[ownedKey]*hold)}
}

// For is the Locker of one owner, such as a purchase ID: a name that nobody else
// in this process uses at the time. Two goroutines under the same name are let
// in together.
func (r *Reentrant) For(owner string) Locker { return &reentrantOwner{r, owner} }

type reentrantOwner struct {
	*Reentrant
	owner string
}

var _ Locker = (*reentrantOwner)(nil)

// Acquire grants at once what the owner holds already. If that lease was lost
// meanwhile it is ErrLost: the outer work is over, and so is this.
func (o *reentrantOwner) Acquire(ctx context.Context, key string) (Lease, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("lock: acquire %q: %w", key, err)
	}
	for {
		h, first := o.enter(key)
		if first {
			h.lease, h.err = o.locker.Acquire(ctx, key)
			close(h.ready)
			if h.err != nil {
				o.leave(key, h, true)
				return nil, h.err
			}
			return &reentrantLease{owner: o, key: key, hold: h}, nil
		}
		select {
		case <-h.ready:
		case <-ctx.Done():
			// The first one may be granted: then the last to leave releases.
			o.abandon(ctx, key, h)
			return nil, fmt.Errorf("lock: acquire %q: %w", key, ctx.Err())
		}
		switch {
		case h.err != nil: // the first one's wait is over, not ours
			o.leave(key, h, true)
		case isLost(h.lease):
			_ = o.end(ctx, key, h)
			return nil, fmt.Errorf("lock: acquire %q again: %w", key, ErrLost)
		default:
			return &reentrantLease{owner: o, key: key, hold: h}, nil
		}
	}
}

// enter joins the owner's acquisition of key, or begins it.
func (o *reentrantOwner) enter(key string) (h *hold, first bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	name := ownedKey{o.owner, key}
	h = o.held[name]
	if h == nil {
		h, first = &hold{ready: make(chan struct{})}, true
		o.held[name] = h
	}
	h.depth++
	return h, first
}

// leave says whether the caller was the last. An acquisition that failed is
// forgotten at once, so that the next caller makes one of its own.
func (o *reentrantOwner) leave(key string, h *hold, failed bool) (last bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	h.depth--
	if name := (ownedKey{o.owner, key}); (failed || h.depth == 0) && o.held[name] == h {
		delete(o.held, name)
	}
	return h.depth == 0
}

// abandon leaves an acquisition that was under way. Its first caller counts too,
// so who is the last here comes after a grant or a failure that it has seen.
func (o *reentrantOwner) abandon(ctx context.Context, key string, h *hold) {
	if o.leave(key, h, false) && h.err == nil {
		_ = h.lease.Release(ctx)
	}
}

// end releases the lock if the caller is the last of its owner.
func (o *reentrantOwner) end(ctx context.Context, key string, h *hold) error {
	if o.leave(key, h, false) {
		return h.lease.Release(ctx)
	}
	if isLost(h.lease) {
		return fmt.Errorf("lock: release %q: %w", key, ErrLost)
	}
	return nil
}

// reentrantLease is one level of an owner's hold.
type reentrantLease struct {
	owner *reentrantOwner
	key   string
	hold  *hold

	once sync.Once
	err  error
}

func (l *reentrantLease) Key() string           { return l.key }
func (l *reentrantLease) Fence() uint64         { return l.hold.lease.Fence() }
func (l *reentrantLease) Lost() <-chan struct{} { return l.hold.lease.Lost() }

// Release gives back one level, and the lock with the last one, whichever level
// that is.
func (l *reentrantLease) Release(ctx context.Context) error {
	l.once.Do(func() { l.err = l.owner.end(ctx, l.key, l.hold) })
	return l.err
}
