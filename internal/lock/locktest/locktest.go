// Package locktest holds the suite that every lock passes: what the contract of
// lock.Locker promises, as far as a variant claims to keep it. A variant says
// what it offers in Features, and how to reach its store in Store; nothing is
// left out silently, since what isn't offered is asserted to be missing where
// that can be seen.
package locktest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"flashsale/internal/lock"
)

// Features is what a variant offers.
type Features struct {
	Excludes        bool // never two holders of a key in a process
	AcrossProcesses bool // nor between two, as which every Locker made by Store.New counts
	Fence           bool // a grant's fence is larger than any earlier one's
	SharesFence     bool // though holders in a row may have the same, since they share a grant
	Expires         bool // a lease has a TTL, and whoever outlives it is told
	Extends         bool // a lease lives as long as it is held, beyond its TTL

	// LeastTTL is the shortest TTL that the variant can have, if that is longer
	// than what the tests would ask for.
	LeastTTL time.Duration
}

// Setting is what a test asks of a Locker. Zero values are the variant's defaults.
type Setting struct {
	TTL   time.Duration
	Wait  time.Duration // negative: try once
	Drift time.Duration // how early a holder takes its lease to have ended
}

// Store is what all Lockers of one test share.
type Store struct {
	// New makes a Locker, as another process would; it is closed by t.
	New func(t testing.TB, s Setting) lock.Locker

	// Steal ends the lease on key behind its holder's back; nil when a lease
	// can't end but by Release.
	Steal func(t testing.TB, key string)

	// Residue lists what is stored of key, apart from what may stay: a fence
	// that has a TTL. nil when nothing is stored outside of the process.
	Residue func(t testing.TB, key string) []string

	// Overtakes says that a request that was cut off by a deadline may be carried
	// out after what its caller sent then, on another connection, to undo it:
	// each connection is served by a thread of its own. What was granted so
	// ends by its TTL.
	Overtakes bool
}

// patience bounds what a test waits for that should happen much sooner.
const patience = 10 * time.Second

// Run runs the suite. open is called for each test, and cleans up by its t.
func Run(t *testing.T, f Features, open func(t *testing.T) Store) {
	tests := []struct {
		name    string
		applies bool
		test    func(*subject)
	}{
		{"a free lock is granted and names its key", true, (*subject).grantsFree},
		{"two holders at a time", f.Excludes, (*subject).excludes},
		{"without exclusion two hold it at a time", !f.Excludes, (*subject).doesNotExclude},
		{"one key blocks another", true, (*subject).keysAreIndependent},
		{"a holder waits longer than told", f.Excludes, (*subject).waitIsBounded},
		{"try once waits", f.Excludes, (*subject).tryOnceDoesNotWait},
		{"a waiter sleeps through the release", f.Excludes, (*subject).waiterIsGrantedOnRelease},
		{"a cancelled caller is granted", true, (*subject).cancelledBefore},
		{"a waiter goes on after its context ended", f.Excludes, (*subject).cancelledWhileWaiting},
		{"many waiters give up and block the lock", f.Excludes, (*subject).abandonedWaiters},
		{"a caller that leaves keeps the lock", true, (*subject).callerLeaves},
		{"a second release deletes another's lock", true, (*subject).releaseTwice},
		{"a cancelled request keeps the lock", true, (*subject).releaseWithCancelledContext},
		{"a panic keeps the lock", true, (*subject).panicReleases},
		{"who isn't the holder any more releases the lock", f.Expires, (*subject).releaseByFormerHolder},
		{"a loss goes unnoticed", f.Expires, (*subject).lossIsSignalled},
		{"work goes on after a loss", f.Expires, (*subject).lossCancelsWork},
		{"a release looks like a loss", f.Expires, (*subject).releaseIsNoLoss},
		{"a crashed holder blocks the lock for ever", f.Expires && !f.Extends, (*subject).leaseExpires},
		{"work longer than the TTL loses the lock", f.Extends, (*subject).leaseIsExtended},
		{"the watchdog extends after the release", f.Extends, (*subject).noExtensionAfterRelease},
		{"cycles leave something behind, or fences repeat", true, (*subject).cycles},
	}
	for _, test := range tests {
		if test.applies {
			t.Run(test.name, func(t *testing.T) {
				before := goleak.IgnoreCurrent()
				t.Cleanup(func() { goleak.VerifyNone(t, before) }) // runs last
				test.test(&subject{T: t, Features: f, Store: open(t), key: "item"})
			})
		}
	}
}

// subject is the variant in one test.
type subject struct {
	*testing.T
	Features
	Store
	key string
}

func (s *subject) grantsFree() {
	lease := s.acquire(s.New(s, Setting{}))
	if lease.Key() != s.key {
		s.Errorf("Key() = %q, want %q", lease.Key(), s.key)
	}
	if got := lease.Fence() != 0; got != s.Fence {
		s.Errorf("Fence() = %d, but a fence is offered: %v", lease.Fence(), s.Fence)
	}
	if got := lease.Lost() != nil; got != s.Expires {
		s.Errorf("Lost() is nil: %v, but a lease expires: %v", !got, s.Expires)
	}
	s.release(lease)
	s.nothingLeft()
}

func (s *subject) excludes() {
	processes, each, rounds := 1, 16, 5
	if s.AcrossProcesses {
		processes, each = 3, 8
	}
	var (
		check Checker
		all   sync.WaitGroup
	)
	for range processes {
		locker := s.New(s, Setting{Wait: time.Minute})
		for range each {
			all.Go(func() {
				for range rounds {
					err := lock.Do(s.Context(), locker, s.key, func(_ context.Context, lease lock.Lease) error {
						check.Enter(lease.Fence())
						defer check.Leave()
						return nil
					})
					if err != nil {
						s.Error(err)
					}
				}
			})
		}
	}
	all.Wait()
	check.Verify(s, processes*each*rounds, s.Fence && !s.SharesFence)
	if s.SharesFence && !slices.IsSorted(check.fences) {
		s.Errorf("fences fall: %d", check.fences)
	}
	s.nothingLeft()
}

func (s *subject) doesNotExclude() {
	locker := s.New(s, Setting{Wait: lock.TryOnce})
	first, second := s.acquire(locker), s.acquire(locker)
	s.release(first)
	s.release(second)
}

func (s *subject) keysAreIndependent() {
	locker := s.New(s, Setting{Wait: lock.TryOnce})
	first := s.acquire(locker)
	s.key = "other"
	second := s.acquire(locker)
	s.release(second)
	s.release(first)
}

func (s *subject) waitIsBounded() {
	const wait = 80 * time.Millisecond
	holder, waiter := s.pair(Setting{Wait: wait})
	lease := s.acquire(holder)
	start := time.Now()
	_, err := waiter.Acquire(s.Context(), s.key)
	took := time.Since(start)
	s.is(err, lock.ErrNotAcquired)
	if took < wait || took > wait+patience/2 {
		s.Errorf("waited %v, told to wait %v", took, wait)
	}
	s.release(lease)
	s.nothingLeft()
}

func (s *subject) tryOnceDoesNotWait() {
	holder, other := s.pair(Setting{Wait: lock.TryOnce})
	lease := s.acquire(holder)
	_, err := other.Acquire(s.Context(), s.key)
	s.is(err, lock.ErrNotAcquired)
	s.release(lease)
	s.release(s.acquire(other))
}

func (s *subject) waiterIsGrantedOnRelease() {
	holder, waiter := s.pair(Setting{Wait: time.Minute})
	lease := s.acquire(holder)
	granted := make(chan lock.Lease)
	go func() {
		next, err := waiter.Acquire(s.Context(), s.key)
		if err != nil {
			s.Error(err)
		}
		granted <- next
	}()
	s.release(lease)
	select {
	case next := <-granted:
		if next != nil {
			s.release(next)
		}
	case <-time.After(patience):
		s.Fatal("still waiting for a lock that is free")
	}
}

func (s *subject) cancelledBefore() {
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	_, err := s.New(s, Setting{}).Acquire(ctx, s.key)
	s.is(err, context.Canceled)
	s.nothingLeft()
}

func (s *subject) cancelledWhileWaiting() {
	holder, waiter := s.pair(Setting{Wait: time.Minute})
	lease := s.acquire(holder)

	ctx, cancel := context.WithTimeout(s.Context(), 30*time.Millisecond)
	defer cancel()
	_, err := waiter.Acquire(ctx, s.key)
	s.is(err, context.DeadlineExceeded)

	ctx, stop := context.WithCancelCause(s.Context())
	time.AfterFunc(30*time.Millisecond, func() { stop(errors.New("the buyer left")) })
	_, err = waiter.Acquire(ctx, s.key)
	s.is(err, context.Canceled)

	s.release(lease)
	s.nothingLeft()
}

func (s *subject) abandonedWaiters() {
	holder, waiter := s.pair(Setting{Wait: time.Minute})
	lease := s.acquire(holder)
	ctx, cancel := context.WithCancel(s.Context())
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			if lease, err := waiter.Acquire(ctx, s.key); err == nil {
				s.release(lease) // granted just before it was cancelled
			} else {
				s.is(err, context.Canceled)
			}
		})
	}
	cancel()
	s.release(lease)
	all.Wait()
	s.nothingLeft()
	s.release(s.acquire(waiter))
}

func (s *subject) releaseTwice() {
	holder, next := s.pair(Setting{Wait: lock.TryOnce})
	first := s.acquire(holder)
	s.release(first)
	second := s.acquire(next)
	s.release(first)
	s.stillHeld(holder)
	s.release(second)
}

func (s *subject) releaseWithCancelledContext() {
	locker := s.New(s, Setting{Wait: lock.TryOnce})
	lease := s.acquire(locker)
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	if err := lease.Release(ctx); err != nil {
		s.Errorf("release: %v", err)
	}
	s.nothingLeft()
	s.release(s.acquire(locker))
}

func (s *subject) panicReleases() {
	locker := s.New(s, Setting{Wait: lock.TryOnce})
	func() {
		defer func() { recover() }()
		_ = lock.Do(s.Context(), locker, s.key, func(context.Context, lock.Lease) error { panic("at work") })
	}()
	s.nothingLeft()
	s.release(s.acquire(locker))
}

func (s *subject) releaseByFormerHolder() {
	holder, next := s.pair(Setting{TTL: time.Minute, Wait: lock.TryOnce})
	first := s.acquire(holder)
	s.Steal(s, s.key)
	second := s.acquire(next)
	if s.Fence && second.Fence() <= first.Fence() {
		s.Errorf("fence %d after %d", second.Fence(), first.Fence())
	}
	s.is(first.Release(s.Context()), lock.ErrLost)
	s.is(first.Release(s.Context()), lock.ErrLost)
	s.stillHeld(next)
	s.release(second)
	s.nothingLeft()
}

func (s *subject) lossIsSignalled() {
	lease := s.acquire(s.New(s, Setting{TTL: s.ttl(time.Second)}))
	s.Steal(s, s.key)
	select {
	case <-lease.Lost():
	case <-time.After(patience):
		s.Fatal("the holder was not told")
	}
	s.is(lease.Release(s.Context()), lock.ErrLost)
}

func (s *subject) releaseIsNoLoss() {
	ttl := s.ttl(500 * time.Millisecond)
	lease := s.acquire(s.New(s, Setting{TTL: ttl}))
	s.release(lease)
	select {
	case <-lease.Lost():
		s.Error("the holder was told of a loss after its release")
	case <-time.After(ttl * 5 / 4):
	}
}

func (s *subject) lossCancelsWork() {
	locker := s.New(s, Setting{TTL: s.ttl(time.Second)})
	err := lock.Do(s.Context(), locker, s.key, func(ctx context.Context, _ lock.Lease) error {
		s.Steal(s, s.key)
		select {
		case <-ctx.Done():
			s.is(context.Cause(ctx), lock.ErrLost)
			return ctx.Err()
		case <-time.After(patience):
			return errors.New("the work was not told")
		}
	})
	s.is(err, lock.ErrLost)
}

func (s *subject) leaseExpires() {
	ttl := s.ttl(time.Second)
	holder, next := s.pair(Setting{TTL: ttl, Wait: time.Minute, Drift: ttl / 4})
	start := time.Now()
	first := s.acquire(holder)
	second := s.acquire(next)
	if took := time.Since(start); took < ttl*9/10 {
		s.Errorf("the lock changed hands after %v of %v", took, ttl)
	}
	select {
	case <-first.Lost():
	default:
		s.Error("another was granted the lock before its holder knew of the loss")
	}
	s.is(first.Release(s.Context()), lock.ErrLost)
	s.release(second)
}

func (s *subject) leaseIsExtended() {
	for ttl := s.ttl(600 * time.Millisecond); ; ttl *= 2 {
		stall, err := s.holdLong(ttl)
		switch {
		case err == nil:
			s.nothingLeft()
			return
		case stall < ttl/3 || ttl > patience:
			s.Fatal(err)
		}
		s.Logf("with a TTL of %v: %v; but the machine stood still for %v", ttl, err, stall)
	}
}

// holdLong holds the lock for several TTLs, and says for how long nothing has
// happened at a time.
func (s *subject) holdLong(ttl time.Duration) (stall time.Duration, err error) {
	holder, other := s.pair(Setting{TTL: ttl, Wait: lock.TryOnce})
	lease := s.acquire(holder)
	last := time.Now()
	for start := last; err == nil && time.Since(start) < 4*ttl; time.Sleep(ttl / 20) {
		if s.Excludes {
			second, refusal := other.Acquire(s.Context(), s.key)
			switch {
			case refusal == nil:
				err = errors.Join(errors.New("granted to another"), second.Release(s.Context()))
			case !errors.Is(refusal, lock.ErrNotAcquired):
				err = refusal
			}
		}
		stall, last = max(stall, time.Since(last)), time.Now()
	}
	return stall, errors.Join(err, lease.Release(s.Context()))
}

func (s *subject) noExtensionAfterRelease() {
	ttl := s.ttl(1200 * time.Millisecond)
	locker := s.New(s, Setting{TTL: ttl, Wait: lock.TryOnce})
	for range 3 { // released at various instants, some of them while it is being extended
		lease := s.acquire(locker)
		time.Sleep(ttl / 3)
		s.release(lease)
		s.nothingLeft()
	}
}

func (s *subject) cycles() {
	first, second := s.pair(Setting{Wait: time.Minute})
	var fence uint64
	for range 100 {
		for _, locker := range []lock.Locker{first, second} {
			lease := s.acquire(locker)
			if s.Fence && lease.Fence() <= fence {
				s.Fatalf("fence %d after %d", lease.Fence(), fence)
			}
			fence = lease.Fence()
			s.release(lease)
		}
	}
	s.nothingLeft()
}

// ttl is the one that a test wants, or the variant's least.
func (s *subject) ttl(wanted time.Duration) time.Duration { return max(wanted, s.LeastTTL) }

// pair makes two Lockers of different processes, if the variant reaches so far.
func (s *subject) pair(setting Setting) (first, second lock.Locker) {
	first = s.New(s, setting)
	if !s.AcrossProcesses {
		return first, first
	}
	return first, s.New(s, setting)
}

func (s *subject) acquire(locker lock.Locker) lock.Lease {
	s.Helper()
	lease, err := locker.Acquire(s.Context(), s.key)
	if err != nil {
		s.Fatal(err)
	}
	return lease
}

func (s *subject) release(lease lock.Lease) {
	s.Helper()
	if err := lease.Release(s.Context()); err != nil {
		s.Errorf("release: %v", err)
	}
}

func (s *subject) stillHeld(locker lock.Locker) {
	s.Helper()
	if s.Excludes {
		_, err := locker.Acquire(s.Context(), s.key)
		s.is(err, lock.ErrNotAcquired)
	}
}

func (s *subject) nothingLeft() {
	s.Helper()
	if s.Residue == nil {
		return
	}
	if left := s.Residue(s, s.key); len(left) > 0 {
		s.Errorf("left behind: %q", left)
	}
}

// is checks that err is this one of the errors that a lock may return, and
// none of the others.
func (s *subject) is(err, want error) {
	s.Helper()
	Is(s, err, want)
}

// Is checks that err is want and none of the other errors of a lock.
func Is(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
	for _, other := range []error{lock.ErrNotAcquired, lock.ErrLost, lock.ErrUnavailable, context.Canceled, context.DeadlineExceeded} {
		// Work that was cancelled because its lease was lost says both.
		if other != want && errors.Is(err, other) && (want != lock.ErrLost || other != context.Canceled) {
			t.Errorf("%v is %v too, want %v alone", err, other, want)
		}
	}
}

// Checker watches from outside of a lock who is inside. The zero value is ready.
type Checker struct {
	inside, most atomic.Int32

	mu     sync.Mutex
	fences []uint64
}

// Enter notes that a holder with this fence is inside.
func (c *Checker) Enter(fence uint64) {
	now := c.inside.Add(1)
	for most := c.most.Load(); now > most && !c.most.CompareAndSwap(most, now); most = c.most.Load() {
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fences = append(c.fences, fence)
}

// Leave notes that a holder is about to release.
func (c *Checker) Leave() { c.inside.Add(-1) }

// Verify checks that there were so many holders, one at a time, and, if they
// had fences, that each one's was larger than that of the one before.
func (c *Checker) Verify(t testing.TB, holders int, fenced bool) {
	t.Helper()
	if most := c.most.Load(); most != 1 {
		t.Errorf("%d held the lock at a time", most)
	}
	if len(c.fences) != holders {
		t.Errorf("%d held the lock, want %d", len(c.fences), holders)
	}
	if fenced && (!slices.IsSorted(c.fences) || len(slices.Compact(slices.Clone(c.fences))) != len(c.fences)) {
		t.Errorf("fences don't grow: %d", c.fences)
	}
}
