package redisstock

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"flashsale/internal/lock"
	"flashsale/internal/stock"
	"flashsale/internal/stock/stocktest"
)

func TestStriped(t *testing.T) {
	for server, newRig := range rigs(striped) {
		t.Run(server, func(t *testing.T) {
			stocktest.CounterSuite(t, newRig)
			stocktest.CounterRace(t, newRig)
		})
	}
}

// What it does when its locks don't exclude: it is they that make it right.
func TestStripedWithoutLocks(t *testing.T) {
	f := onReal(t)
	sale := testSale(t, f)
	user := sameSegment("ann")
	var late stock.Result
	f.hook.after = func(script *script) {
		if script == stripedReadScript { // another buyer of the segment comes in between
			f.hook.after = nil
			late = one(t, f.Striped(lock.None{}), 0, sale, user, 1)
		}
	}
	first := one(t, f.Striped(lock.None{}), 0, sale, "ann", 1)
	if first.Err != nil || late.Err != nil {
		t.Fatal(first.Err, late.Err)
	}
	wantLeft(t, f, sale, 9, 2) // an update is lost
}

// The same with locks whose fences grow: the older holder writes nothing.
func TestStripedOutlivedHolder(t *testing.T) {
	f := onReal(t)
	sale := testSale(t, f)
	user := sameSegment("ann")
	var late stock.Result
	f.hook.after = func(script *script) {
		if script == stripedReadScript {
			f.hook.after = nil
			late = one(t, f.Striped(fenced(2)), 0, sale, user, 1)
		}
	}
	first := one(t, f.Striped(fenced(1)), 0, sale, "ann", 1)
	if !errors.Is(first.Err, stock.ErrStale) || late.Err != nil {
		t.Errorf("the older holder: %v, want ErrStale; the newer: %v", first.Err, late.Err)
	}
	wantLeft(t, f, sale, 9, 1)
}

// sameSegment is another user of user's segment.
func sameSegment(user string) string {
	for n := 0; ; n++ {
		if other := fmt.Sprint("user-", n); segmentOf(other) == segmentOf(user) {
			return other
		}
	}
}

// fenced is a lock that excludes nobody, and whose grants have this fence.
type fenced uint64

func (f fenced) Acquire(context.Context, string) (lock.Lease, error) { return fencedLease(f), nil }

type fencedLease uint64

func (fencedLease) Key() string                   { return "" }
func (f fencedLease) Fence() uint64               { return uint64(f) }
func (fencedLease) Lost() <-chan struct{}         { return nil }
func (fencedLease) Release(context.Context) error { return nil }

// The last units are in one segment, the buyer's is another: it gets them.
func TestStripedTakesFromOthers(t *testing.T) {
	f := onReal(t)
	sale := testSale(t, f)
	counter := striped(f.Store)
	if result := one(t, counter, 0, sale, "ann", 9); result.Err != nil || result.Remaining != 1 {
		t.Fatalf("9 of 10, of which no segment has more than 2: %+v", result)
	}
	if result := one(t, counter, 0, sale, "bob", 2); !errors.Is(result.Err, stock.ErrSoldOut) {
		t.Errorf("2 of 1: %+v", result)
	}
	if result := one(t, counter, 0, sale, "cat", 1); result.Err != nil || result.Remaining != 0 {
		t.Errorf("the last one: %+v", result)
	}
	wantLeft(t, f, sale, 0, 10)
}
