package redislock

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"flashsale/internal/lock"
	"flashsale/internal/lock/locktest"
)

// awaitNext returns once a waiter stands in the line behind lease, chosen.
func awaitNext(t *testing.T, lease lock.Lease) {
	t.Helper()
	eventually(t, "somebody is in line", func() bool {
		_, someone := lease.(*watchdogLease).turn.Choose()
		return someone
	})
}

// endRow makes a lease the last of its row, which isn't passed on: the next one's
// is its own.
func endRow(lease lock.Lease) { lease.(*watchdogLease).row.n = maxInARow }

// lineUp makes n more claims to a lock that its process holds, and returns when
// they are in line, or about to be. Each calls fn with its lease, and releases it.
func lineUp(t *testing.T, w *Watchdog, n int, fn func(*watchdogLease)) *sync.WaitGroup {
	t.Helper()
	var all sync.WaitGroup
	claims := w.names.last.Load() + uint64(n)
	for range n {
		all.Go(func() {
			lease := acquire(t, w)
			fn(lease.(*watchdogLease))
			if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	eventually(t, "all are in line", func() bool { return w.names.last.Load() == claims })
	return &all
}

func TestHandoverSharesAFence(t *testing.T) {
	addr := realRedis(t)
	watchdog := newWatchdog(t, addr, Options{Wait: time.Minute})
	lease := acquire(t, watchdog)
	last, longest := lease.Fence(), 0 // guarded by the lock
	all := lineUp(t, watchdog, 3*maxInARow, func(next *watchdogLease) {
		if next.Fence() <= last {
			t.Errorf("fence %d after %d", next.Fence(), last)
		}
		last, longest = next.Fence(), max(longest, next.row.n)
	})
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
	all.Wait()
	if longest < 2 || longest > maxInARow {
		t.Errorf("%d in a row, want 2 to %d", longest, maxInARow)
	}
	if left := residue(t, connect(t, addr), "item"); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// A row is one lease for Redis: one token, and an exchange at each end.
func TestLeaseIsPassedOn(t *testing.T) {
	const holders = 2*maxInARow + 1
	addr := realRedis(t)
	client, f := flake(t, addr, acquireScript, func(context.Context, int) fault { return pass })
	watchdog := buildWatchdog(t, client, Options{Wait: time.Minute}).(*Watchdog)
	lease := acquire(t, watchdog)
	tokens, before := map[string]int{}, lease.(*watchdogLease) // guarded by the lock
	all := lineUp(t, watchdog, holders-1, func(next *watchdogLease) {
		if holder := connect(t, addr).Get(t.Context(), lockKey).Val(); holder != next.token {
			t.Errorf("Redis knows %q as the holder, want %q", holder, next.token)
		}
		if next.token == before.token && (next.fence != before.fence+1 || !next.Until().Equal(before.Until())) {
			t.Errorf("fence %d until %v after %d until %v", next.fence, next.Until(), before.fence, before.Until())
		}
		tokens[next.token]++
		before = next
		next.row.since = time.Now() // a row may take as long as it likes
	})
	before.row.since = time.Now()
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
	all.Wait()
	if n := f.runs(acquireScript); n != 3 || len(tokens) != 3 {
		t.Errorf("%d holders took %d exchanges and were %d for Redis, want 3", holders, n, len(tokens))
	}
	if left := residue(t, client, "item"); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// What keeps a lease from being passed on.
func TestLeaseIsNotPassedOn(t *testing.T) {
	step := &lock.Step{}
	for name, test := range map[string]struct {
		left  time.Duration // of 30 s
		lease watchdogLease
		next  claim
		can   bool
	}{
		"nothing":                   {29 * time.Second, watchdogLease{row: row{time.Now(), maxInARow - 1}}, claim{}, true},
		"the row":                   {29 * time.Second, watchdogLease{row: row{time.Now(), maxInARow}}, claim{}, false},
		"an extension is due":       {19 * time.Second, watchdogLease{row: newRow()}, claim{}, false},
		"its own last step":         {29 * time.Second, watchdogLease{row: newRow(), last: &last{}}, claim{}, false},
		"the next one's first step": {29 * time.Second, watchdogLease{row: newRow()}, claim{first: step}, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := test.lease
			c := &claim{store: &store{Options: Options{TTL: 30 * time.Second}}}
			l.watchedLease = &watchedLease{lease: newLease(c, grant{until: time.Now().Add(test.left)}, nil)}
			defer l.Stop()
			if can := l.canPass(&test.next); can != test.can {
				t.Errorf("can be passed on: %v", can)
			}
		})
	}
}

// Redis loses a lock in the middle of a row: the last holder is told.
func TestLossWithinARow(t *testing.T) {
	addr := realRedis(t)
	client := connect(t, addr)
	watchdog := newWatchdog(t, addr, Options{Wait: time.Minute})
	lease := acquire(t, watchdog)
	failed := make(chan error)
	go func() {
		next, err := watchdog.Acquire(t.Context(), "item")
		if err == nil {
			err = next.Release(t.Context())
		}
		failed <- err
	}()
	awaitNext(t, lease)
	client.Set(t.Context(), lockKey, "another", time.Minute)
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
	locktest.Is(t, <-failed, lock.ErrLost)
	if holder := client.Get(t.Context(), lockKey).Val(); holder != "another" {
		t.Errorf("the lock was taken from its holder: %q", holder)
	}
}

// A lease that its holder knows to be lost ends with it.
func TestLostLeaseIsNotPassedOn(t *testing.T) {
	watchdog := newWatchdog(t, realRedis(t), Options{Wait: time.Minute})
	lease := acquire(t, watchdog).(*watchdogLease)
	all := lineUp(t, watchdog, 1, func(next *watchdogLease) {
		if next.token == lease.token {
			t.Error("the lost lease was passed on")
		}
	})
	awaitNext(t, lease)
	lease.Lose()
	locktest.Is(t, lease.Release(t.Context()), lock.ErrLost)
	all.Wait()
}

// The next in line goes while the lease is being passed on to it.
func TestNextInLineLeavesWhenALeaseIsPassedOn(t *testing.T) {
	addr := realRedis(t)
	watchdog := newWatchdog(t, addr, Options{Wait: time.Minute})
	lease := acquire(t, watchdog)
	ctx, leave := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() {
		_, err := watchdog.Acquire(ctx, "item")
		failed <- err
	}()
	awaitNext(t, lease)
	leave()
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
	locktest.Is(t, <-failed, context.Canceled)
	if left := residue(t, connect(t, addr), "item"); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// The process is stopped while a lease is being passed on, until the lease is
// over. Asked for again under its token, its first fence would come a second time.
func TestLeaseIsPassedOnTooLate(t *testing.T) {
	addr := realRedis(t)
	client := connect(t, addr)
	watchdog := newWatchdog(t, addr, Options{Wait: 5 * time.Second})
	turn, err := watchdog.queue.Enter(t.Context(), "item", 0)
	if err != nil {
		t.Fatal(err)
	}
	p := watchdog.protocol
	granted, err := p.acquire(t.Context(), lockKey, fenceKey, "passed on")
	if err != nil || !granted.granted {
		t.Fatal(granted, err)
	}
	used := granted.fence + maxInARow - 1
	all := lineUp(t, watchdog, 1, func(next *watchdogLease) {
		if next.token == "passed on" || next.fence <= used {
			t.Errorf("token %q, fence %d after %d", next.token, next.fence, used)
		}
	})
	eventually(t, "somebody is in line", func() bool {
		_, someone := turn.Choose()
		return someone
	})
	turn.HandOver(handed{grant: grant{granted: true, fence: used, until: time.Now()}, row: newRow(), token: "passed on"})
	all.Wait()
	if left := residue(t, client, "item"); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestRowHasNoEnd(t *testing.T) {
	now := time.Now()
	for _, test := range []struct {
		row  row
		over bool
	}{
		{newRow(), false},
		{row{since: now, n: maxInARow - 1}.next(), true},
		{row{since: now.Add(-maxRow), n: 1}.next(), true},
	} {
		if got := test.row.isOver(); got != test.over {
			t.Errorf("%+v is over: %v", test.row, got)
		}
	}
}

// What the exchange does in Redis.
func TestHandoverScript(t *testing.T) {
	client := connect(t, realRedis(t))
	p := buildWatchdog(t, client, Options{}).(*Watchdog).protocol.(handsOver)
	const ttl, alone = 30 * time.Second, 0
	handOver := func(token, next string, listeners int) (fence uint64, released bool) {
		t.Helper()
		answer, not, err := p.handOver(t.Context(), lockKey, fenceKey, token, next, listeners)
		if err != nil || answer.granted == (answer.fence == 0) {
			t.Fatalf("%+v, %v", answer, err)
		}
		return answer.fence, not == freed
	}
	holder := func(want string) {
		t.Helper()
		if got := client.Get(t.Context(), lockKey).Val(); got != want {
			t.Errorf("held by %q, want %q", got, want)
		}
		if left := client.PTTL(t.Context(), lockKey).Val(); want != "" && (left <= ttl/2 || left > ttl) {
			t.Errorf("held for %v, want %v", left, ttl)
		}
	}
	take := func(token string) { client.Set(t.Context(), lockKey, token, time.Second) }

	take("a")
	before := client.Time(t.Context()).Val().UnixMicro()
	first, _ := handOver("a", "b", -1)
	if holder("b"); first < uint64(before) {
		t.Errorf("fence %d at %d", first, before)
	}
	take("b")
	if again, _ := handOver("a", "b", -1); again != first { // the first answer was lost
		t.Errorf("fence %d, and then %d", first, again)
	}
	holder("b")
	client.Del(t.Context(), fenceKey) // and with it the last fence
	if again, _ := handOver("a", "b", -1); again <= first {
		t.Errorf("fence %d after %d", again, first)
	}
	const ahead = 4102444800000007 // in the year 2100
	client.Set(t.Context(), fenceKey, uint64(ahead), 0)
	if next, _ := handOver("b", "c", alone); next != ahead+maxInARow {
		t.Errorf("fence %d after %d", next, uint64(ahead))
	}
	holder("c")
	if stored := client.Get(t.Context(), fenceKey).Val(); stored != strconv.Itoa(ahead+maxInARow) {
		t.Errorf("stored: %s", stored)
	}
	if left := client.PTTL(t.Context(), fenceKey).Val(); left <= fenceTTL-time.Hour {
		t.Errorf("the fence lasts %v", left)
	}

	if fence, released := handOver("a", "d", -1); fence != 0 || released {
		t.Errorf("another's lock: fence %d, released: %v", fence, released)
	}
	holder("c")
	listener := client.Subscribe(t.Context(), lockKey)
	defer listener.Close()
	if _, err := listener.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	if fence, _ := handOver("c", "d", 1); fence == 0 { // the listener is its own
		t.Error("not handed over")
	}
	holder("d")
	if fence, released := handOver("d", "e", alone); fence != 0 || !released {
		t.Errorf("somebody else listens: fence %d, released: %v", fence, released)
	}
	holder("")
	if _, err := listener.ReceiveMessage(t.Context()); err != nil {
		t.Error(err)
	}
}

// The lease of the next one counts from before the exchange was sent, and is none
// when its time is over.
func TestHandoverIsAnsweredLate(t *testing.T) {
	const ttl = time.Second
	for name, late := range map[string]time.Duration{"a little": ttl / 10, "too late": ttl} {
		t.Run(name, func(t *testing.T) {
			client, _ := flake(t, realRedis(t), nil, nil)
			var delay atomic.Int64
			var answered time.Time
			client.AddHook(afterScript(func() {
				time.Sleep(time.Duration(delay.Swap(0))) // counts as the exchange's own time
				answered = time.Now()
			}))
			watchdog := buildWatchdog(t, client, Options{TTL: ttl, Drift: ttl / 4, Wait: time.Minute}).(*Watchdog)
			lease := acquire(t, watchdog)
			all := lineUp(t, watchdog, 1, func(next *watchdogLease) {
				if !time.Now().Before(next.Until()) {
					t.Error("handed out when it was over already")
				}
				if until := answered.Add(ttl * 3 / 4); !next.Until().Before(until) {
					t.Errorf("counts %v from after the answer", next.Until().Sub(until))
				}
			})
			awaitNext(t, lease)
			endRow(lease)
			delay.Store(int64(late))
			if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
			all.Wait()
		})
	}
}

// A request whose time is over hands over too.
func TestOverdueReleaseHandsOverNothing(t *testing.T) {
	watchdog := newWatchdog(t, realRedis(t), Options{Wait: time.Minute})
	lease := acquire(t, watchdog)
	all := lineUp(t, watchdog, 1, func(next *watchdogLease) {
		if next.row.n != 2 {
			t.Error("it was not handed over")
		}
	})
	awaitNext(t, lease)
	ctx, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	if err := lease.Release(ctx); err != nil {
		t.Error(err)
	}
	all.Wait()
}

// The exchange that hands over fails: both have to find out by themselves.
func TestAnswerToAHandoverIsLost(t *testing.T) {
	addr := realRedis(t)
	for name, how := range map[string]fault{"not sent": notSent, "reply lost": replyLost} {
		t.Run(name, func(t *testing.T) {
			client, _ := flake(t, addr, acquireScript, func(_ context.Context, nth int) fault {
				if nth == 2 {
					return how
				}
				return pass
			})
			watchdog := buildWatchdog(t, client, Options{Wait: time.Minute, PollMin: never, PollMax: never})
			lease := acquire(t, watchdog)
			granted := waitInBackground(t, watchdog, "item")
			awaitNext(t, lease)
			endRow(lease)
			if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
			finish(t, granted)
			if left := residue(t, client, "item"); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}

// The next in line goes while it is being given the lock.
func TestNextInLineLeavesDuringTheHandover(t *testing.T) {
	addr := realRedis(t)
	for name, how := range map[string]fault{"answered": pass, "reply lost": replyLost} {
		t.Run(name, func(t *testing.T) {
			ctx, leave := context.WithCancel(t.Context())
			client, _ := flake(t, addr, acquireScript, func(_ context.Context, nth int) fault {
				if nth == 2 {
					leave()
					return how
				}
				return pass
			})
			watchdog := buildWatchdog(t, client, Options{Wait: time.Minute})
			lease := acquire(t, watchdog)
			failed := make(chan error)
			go func() {
				_, err := watchdog.Acquire(ctx, "item")
				failed <- err
			}()
			awaitNext(t, lease)
			endRow(lease)
			if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
			locktest.Is(t, <-failed, context.Canceled)
			if left := residue(t, client, "item"); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}

func TestLostLeaseIsHandedOver(t *testing.T) {
	addr := realRedis(t)
	client := connect(t, addr)
	watchdog := newWatchdog(t, addr, Options{Wait: 500 * time.Millisecond})
	lease := acquire(t, watchdog)
	client.Set(t.Context(), lockKey, "another", time.Minute)
	failed := make(chan error)
	go func() {
		_, err := watchdog.Acquire(t.Context(), "item")
		failed <- err
	}()
	awaitNext(t, lease)
	endRow(lease)
	locktest.Is(t, lease.Release(t.Context()), lock.ErrLost)
	locktest.Is(t, <-failed, lock.ErrNotAcquired)
	select {
	case <-lease.Lost():
	default:
		t.Error("the holder's loss is not signalled")
	}
	if holder := client.Get(t.Context(), lockKey).Val(); holder != "another" {
		t.Errorf("the lock was taken from its holder: %q", holder)
	}
}

// Nothing was sent that could have ended the lease: another has it.
func TestHandoverThatIsNotSentHidesALoss(t *testing.T) {
	addr := realRedis(t)
	client, _ := flake(t, addr, acquireScript, func(_ context.Context, nth int) fault {
		if nth == 2 {
			return notSent
		}
		return pass
	})
	watchdog := buildWatchdog(t, client, Options{Wait: 500 * time.Millisecond})
	lease := acquire(t, watchdog)
	failed := make(chan error)
	go func() {
		_, err := watchdog.Acquire(t.Context(), "item")
		failed <- err
	}()
	awaitNext(t, lease)
	endRow(lease)
	connect(t, addr).Set(t.Context(), lockKey, "another", time.Minute)
	locktest.Is(t, lease.Release(t.Context()), lock.ErrLost)
	locktest.Is(t, <-failed, lock.ErrNotAcquired)
}

// A process that always has somebody in line still lets others have the lock.
func TestHandoversStarveOtherProcesses(t *testing.T) {
	const crowd = 20 * maxInARow
	addr := realRedis(t)
	busy := newWatchdog(t, addr, Options{Wait: time.Minute})
	other := newWatchdog(t, addr, Options{Wait: time.Minute, PollMin: never, PollMax: never})
	lease := acquire(t, busy)
	var served atomic.Int64
	all := lineUp(t, busy, crowd, func(*watchdogLease) { served.Add(1) })
	granted := waitInBackground(t, other, "item")
	eventually(t, "the other subscribes", func() bool { return subscribed(other, lockKey) })
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if <-granted; served.Load() == crowd {
		t.Error("the other came last")
	}
	finish(t, granted)
	all.Wait()
}
