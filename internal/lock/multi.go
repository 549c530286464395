package lock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Multi holds the locks of several keys at once, all of them or none.
//
// Protects against:  two callers that need the same keys in different orders and wait for each other for ever: everybody takes them in the same order.
// Still fails when:  some other code takes two of these keys on its own, in another order: then both wait until their wait is over. A long list is held up by its busiest key.
// Fixed by:          fewer keys: one lock for what always changes together, or one script or transaction for all.
type Multi struct {
	locker Locker
	wait   time.Duration
}

// MultiOptions are the options of NewMulti; the zero value is the default.
type MultiOptions struct {
	// Wait bounds the wait for all keys together; 0 = DefaultWait. Each single
	// one is bounded by the Locker's own wait as well; negative: by that alone.
	Wait time.Duration
}

// NewMulti makes a Multi of the locks of locker.
func NewMulti(locker Locker, options MultiOptions) *Multi {
	wait := options.Wait
	if wait == 0 {
		wait = DefaultWait
	}
	return &Multi{locker: locker, wait: wait}
}

// errWaitOver tells the end of Multi's own wait from the caller's.
var errWaitOver = errors.New("lock: the wait for several keys is over")

// Acquire acquires every key once, in the order of their names, however often
// and in which order they are given. After an error the caller holds none.
func (m *Multi) Acquire(ctx context.Context, keys ...string) (*MultiLease, error) {
	keys = slices.Compact(slices.Sorted(slices.Values(keys)))
	if len(keys) == 0 {
		return nil, errors.New("lock: acquire no keys")
	}
	waiting := ctx
	if m.wait > 0 {
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeoutCause(ctx, m.wait, errWaitOver)
		defer cancel()
	}
	leases := make([]Lease, 0, len(keys))
	for _, key := range keys {
		lease, err := m.locker.Acquire(waiting, key)
		if err == nil {
			leases = append(leases, lease)
			if err = lostMeanwhile(leases); err == nil {
				continue
			}
		} else if ctx.Err() == nil && context.Cause(waiting) == errWaitOver && !errors.Is(err, ErrUnavailable) {
			err = ErrNotAcquired
		}
		_ = releaseAll(ctx, leases)
		return nil, fmt.Errorf("lock: acquire %q of %q: %w", key, keys, err)
	}
	return newMultiLease(keys, leases), nil
}

// lostMeanwhile is ErrNotAcquired when the last key took so long that the lease
// of an earlier one has ended.
func lostMeanwhile(leases []Lease) error {
	for _, lease := range leases {
		if isLost(lease) {
			return ErrNotAcquired
		}
	}
	return nil
}

func isLost(lease Lease) bool {
	select {
	case <-lease.Lost():
		return true
	default:
		return false
	}
}

// MultiLease is the lease of several keys: lost as a whole when any is lost.
type MultiLease struct {
	keys   []string
	leases []Lease
	lost   chan struct{}
	done   chan struct{} // closed by Release
	watch  sync.WaitGroup

	once sync.Once
	err  error
}

var _ Lease = (*MultiLease)(nil)

func newMultiLease(keys []string, leases []Lease) *MultiLease {
	l := &MultiLease{keys: keys, leases: leases, done: make(chan struct{})}
	var lose func()
	for _, lease := range leases {
		if lease.Lost() == nil {
			continue
		}
		if l.lost == nil {
			l.lost = make(chan struct{})
			lose = sync.OnceFunc(func() { close(l.lost) })
		}
		l.watch.Go(func() {
			select {
			case <-lease.Lost():
				lose()
			case <-l.done:
			}
		})
	}
	return l
}

// Key is the keys, sorted, with commas between them.
func (l *MultiLease) Key() string { return strings.Join(l.keys, ",") }

// Fence is that of the only key, and 0 of several: each key has a sequence of
// its own. See Fences.
func (l *MultiLease) Fence() uint64 {
	if len(l.leases) > 1 {
		return 0
	}
	return l.leases[0].Fence()
}

// Fences is the fence of each key.
func (l *MultiLease) Fences() map[string]uint64 {
	fences := make(map[string]uint64, len(l.leases))
	for _, lease := range l.leases {
		fences[lease.Key()] = lease.Fence()
	}
	return fences
}

// Lost is closed when the first of the leases is lost.
func (l *MultiLease) Lost() <-chan struct{} { return l.lost }

// Release gives back every key, the last one first, whatever becomes of the
// others. Its error is ErrLost when any was lost.
func (l *MultiLease) Release(ctx context.Context) error {
	l.once.Do(func() {
		close(l.done)
		l.watch.Wait()
		l.err = releaseAll(ctx, l.leases)
	})
	return l.err
}

// releaseAll releases in reverse order. Of several errors, a loss is what the
// caller has to know.
func releaseAll(ctx context.Context, leases []Lease) (err error) {
	for _, lease := range slices.Backward(leases) {
		one := lease.Release(ctx)
		if err == nil || errors.Is(one, ErrLost) && !errors.Is(err, ErrLost) {
			err = one
		}
	}
	return err
}
