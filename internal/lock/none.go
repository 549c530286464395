package lock

import "context"

// None is no lock at all.
//
// Protects against:  nothing. It shows what goes wrong without a lock.
// Still fails when:  two callers come at once: both are granted.
// Fixed by:          Local within a process, a lock on a server beyond it.
type None struct{}

var _ Locker = None{}

// Acquire grants at once, unless ctx is done. The fence is 0.
func (None) Acquire(ctx context.Context, key string) (Lease, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return noLease(key), nil
}

type noLease string

func (l noLease) Key() string                 { return string(l) }
func (noLease) Fence() uint64                 { return 0 }
func (noLease) Lost() <-chan struct{}         { return nil }
func (noLease) Release(context.Context) error { return nil }
