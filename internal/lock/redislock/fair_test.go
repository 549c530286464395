package redislock

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"flashsale/internal/lock"
	"flashsale/internal/lock/locktest"
)

const queueKey, placesKey = lockKey + ":queue", lockKey + ":places"

// inLine waits until so many wait for the lock.
func inLine(t *testing.T, client *redis.Client, n int64) {
	t.Helper()
	eventually(t, fmt.Sprint(n, " in line"), func() bool { return client.LLen(t.Context(), queueKey).Val() == n })
}

func newFair(t testing.TB, addr string, options FairOptions) *Fair {
	t.Helper()
	fair, err := NewFair(connect(t, addr), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fair.Close() })
	return fair
}

func TestLaterWaiterOfAnotherProcessIsServedFirst(t *testing.T) {
	addr := realRedis(t)
	client := connect(t, addr)
	var processes []*Fair
	for range 3 {
		processes = append(processes, newFair(t, addr, FairOptions{Options: Options{Wait: time.Minute}}))
	}
	holder := acquire(t, processes[0])
	var (
		served []int
		all    sync.WaitGroup
	)
	for i := range 12 {
		all.Go(func() {
			lease, err := processes[i%3].Acquire(t.Context(), "item")
			if err != nil {
				t.Error(err)
				return
			}
			served = append(served, i) // the lock guards it
			if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
		inLine(t, client, int64(i)+1)
	}
	if _, err := newFair(t, addr, FairOptions{Options: Options{Wait: lock.TryOnce}}).Acquire(t.Context(), "item"); err == nil {
		t.Error("who came last was served first")
	}
	if err := holder.Release(t.Context()); err != nil {
		t.Error(err)
	}
	all.Wait()
	if !slices.Equal(served, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}) {
		t.Errorf("served in the order %d", served)
	}
	if left := residue(t, client, "item"); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// Who looks once doesn't overtake who has been waiting, though the lock is free.
func TestFreeLockIsTakenFromWhoIsNext(t *testing.T) {
	addr := realRedis(t)
	client := connect(t, addr)
	deadWaiters(t, client, 1, time.Minute)
	_, err := newFair(t, addr, FairOptions{Options: Options{Wait: lock.TryOnce}}).Acquire(t.Context(), "item")
	locktest.Is(t, err, lock.ErrNotAcquired)
	inLine(t, client, 1)
}

func TestDeadWaitersWedgeTheQueue(t *testing.T) {
	const place = 400 * time.Millisecond
	for _, dead := range []int{1, 20} { // not one after the other
		t.Run(fmt.Sprint(dead), func(t *testing.T) {
			addr := realRedis(t)
			client := connect(t, addr)
			start := time.Now()
			deadWaiters(t, client, dead, place)
			lease := acquire(t, newFair(t, addr, FairOptions{Options: Options{Wait: time.Minute, PollMin: never, PollMax: never}}))
			if took := time.Since(start); took < place/2 || took > 5*place {
				t.Errorf("served after %v, %d places ended after %v", took, dead, place)
			}
			if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
			if left := residue(t, client, "item"); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}

// A process that dies in line and one that dies at work, together.
func TestDeadWaiterBehindADeadHolderWedgesTheQueue(t *testing.T) {
	addr := realRedis(t)
	client := connect(t, addr)
	client.Set(t.Context(), lockKey, "crashed", 200*time.Millisecond)
	deadWaiters(t, client, 3, 300*time.Millisecond)
	lease := acquire(t, newFair(t, addr, FairOptions{Options: Options{Wait: time.Minute}}))
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// deadWaiters took places in the queue, and will not be heard of again.
func deadWaiters(t *testing.T, client *redis.Client, n int, place time.Duration) {
	t.Helper()
	now := client.Time(t.Context()).Val()
	for i := range n {
		token := fmt.Sprint("dead-", i)
		client.RPush(t.Context(), queueKey, token)
		client.HSet(t.Context(), placesKey, token, now.Add(place).UnixMilli())
	}
}

func TestWaiterThatLivesLosesItsPlace(t *testing.T) {
	const place = 400 * time.Millisecond
	addr := realRedis(t)
	client := connect(t, addr)
	options := FairOptions{PlaceTTL: place, Options: Options{Wait: time.Minute, PollMin: place / 10, PollMax: place / 5}}
	holder := acquire(t, newFair(t, addr, options))
	granted := waitInBackground(t, newFair(t, addr, options), "item")
	inLine(t, client, 1)
	token := client.LIndex(t.Context(), queueKey, 0).Val()
	for start := time.Now(); time.Since(start) < 5*place; time.Sleep(place / 20) {
		if got := client.LRange(t.Context(), queueKey, 0, -1).Val(); !slices.Equal(got, []string{token}) {
			t.Fatalf("the queue is %q, was %q", got, token)
		}
		if client.PTTL(t.Context(), queueKey).Val() <= 0 || client.PTTL(t.Context(), placesKey).Val() <= 0 {
			t.Fatal("a queue without an end")
		}
	}
	if err := holder.Release(t.Context()); err != nil {
		t.Error(err)
	}
	finish(t, granted)
}

func TestWaiterThatGivesUpLeavesItsPlaceBehind(t *testing.T) {
	addr := realRedis(t)
	client := connect(t, addr)
	holder := acquire(t, newFair(t, addr, FairOptions{}))
	ways := map[string]func(*Fair) error{
		"wait is over": func(f *Fair) error {
			_, err := f.Acquire(t.Context(), "item")
			return err
		},
		"context ended": func(f *Fair) error {
			f.Wait = time.Minute
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() {
				defer cancel()
				inLine(t, client, 1)
			}()
			_, err := f.Acquire(ctx, "item")
			return err
		},
	}
	for name, way := range ways {
		if err := way(newFair(t, addr, FairOptions{Options: Options{Wait: 50 * time.Millisecond}})); err == nil {
			t.Error(name, "and it was granted")
		}
		if got := client.Exists(t.Context(), queueKey, placesKey).Val(); got != 0 {
			t.Errorf("%s: the place is still there", name)
		}
	}
	if err := holder.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// The first in line was told that the lock is free, and is no longer there.
func TestFirstThatGivesUpTakesTheWakingWithIt(t *testing.T) {
	addr := realRedis(t)
	client := connect(t, addr)
	deadWaiters(t, client, 1, time.Hour)
	slow := FairOptions{Options: Options{Wait: time.Minute, PollMin: never, PollMax: never}}
	next := newFair(t, addr, slow)
	granted := waitInBackground(t, next, "item")
	inLine(t, client, 2)
	eventually(t, "the waiter subscribes", func() bool { return next.listener.hears(lockKey) })
	if _, _, err := newFair(t, addr, slow).release(t.Context(), lockKey, "dead-0"); err != nil {
		t.Fatal(err)
	}
	finish(t, granted)
}

func TestReleaseWakesTheWholeQueue(t *testing.T) {
	addr := realRedis(t)
	undisturbed := connect(t, addr)
	client, f := flake(t, addr, nil, nil)
	fair := buildFair(t, client, Options{Wait: time.Minute, PollMin: never, PollMax: never}).(*Fair)
	holder := acquire(t, fair)
	var waiting []<-chan lock.Lease
	for i := range 10 {
		waiting = append(waiting, waitInBackground(t, fair, "item"))
		inLine(t, undisturbed, int64(i)+1)
	}
	eventually(t, "all subscribe", func() bool { return f.runs(acquireScript) >= 21 })
	if err := holder.Release(t.Context()); err != nil {
		t.Error(err)
	}
	for _, granted := range waiting {
		finish(t, granted)
	}
	// The holder once; each waiter at first, once it hears, and in its turn.
	if n := f.runs(acquireScript); n > 31 {
		t.Errorf("asked %d times, want 31", n)
	}
}

func TestPlaceThatEndsBetweenTwoPollsIsAccepted(t *testing.T) {
	_, err := NewFair(connect(t, freeAddr(t)), FairOptions{PlaceTTL: time.Second, Options: Options{PollMax: time.Second}})
	if err == nil || !strings.Contains(err.Error(), "PlaceTTL is 1s, allowed: at least twice PollMax, 2s") {
		t.Errorf("got %v", err)
	}
}
