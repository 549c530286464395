package lock

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// DefaultWait is how long a variant waits for a lock when it isn't told.
const DefaultWait = 2 * time.Second

// TryOnce, as a wait, asks for the lock once and doesn't wait for it.
const TryOnce time.Duration = -1

// Local is a lock of this process.
//
// Protects against:  goroutines of one process that come at once.
// Still fails when:  there is a second process: neither knows of the other.
// Fixed by:          a lock on a server that both ask.
type Local struct {
	wait    time.Duration
	noFence bool
	queue   Queue

	mu        sync.Mutex
	lastFence uint64 // of all keys together, so that no key leaves a counter behind
}

// LocalOptions are the options of NewLocal; the zero value is the default.
type LocalOptions struct {
	Wait time.Duration // for the lock; 0 = DefaultWait, negative = TryOnce

	// NoFence makes every fence 0. It is for a value that other processes write
	// too: they count by themselves, so a store can't compare their fences.
	NoFence bool
}

// NewLocal makes a lock that all users of the returned value share.
func NewLocal(options LocalOptions) *Local {
	wait := options.Wait
	if wait == 0 {
		wait = DefaultWait
	}
	return &Local{wait: wait, noFence: options.NoFence}
}

var _ Locker = (*Local)(nil)

// Acquire waits for its turn, first come, first served. The fence grows with
// each grant of this process; between processes it means nothing.
func (l *Local) Acquire(ctx context.Context, key string) (Lease, error) {
	turn, err := l.queue.Enter(ctx, key, l.wait)
	if err != nil {
		return nil, fmt.Errorf("lock: acquire %q: %w", key, err)
	}
	return &localLease{turn: turn, fence: l.nextFence()}, nil
}

// nextFence follows the clock, so that fences go on growing after a restart.
func (l *Local) nextFence() uint64 {
	if l.noFence {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastFence = max(l.lastFence+1, uint64(time.Now().UnixMicro()))
	return l.lastFence
}

type localLease struct {
	turn  *Turn
	fence uint64
}

func (l *localLease) Key() string           { return l.turn.key }
func (l *localLease) Fence() uint64         { return l.fence }
func (l *localLease) Lost() <-chan struct{} { return nil } // it ends by Release alone

func (l *localLease) Release(context.Context) error {
	l.turn.Leave()
	return nil
}
