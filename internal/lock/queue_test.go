package lock

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestQueueLetsALaterCallerPassFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q Queue
		holder := enter(t, &q, "item")
		var order []int
		for i := range 10 {
			go func() {
				turn := enter(t, &q, "item")
				order = append(order, i)
				turn.Leave()
			}()
			synctest.Wait()
		}
		holder.Leave()
		synctest.Wait()
		if !slices.Equal(order, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}) {
			t.Errorf("passed in the order %v", order)
		}
		empty(t, &q)
	})
}

func TestQueueIsWedgedByWhoGaveUp(t *testing.T) {
	for _, quitter := range []int{0, 1, 2} { // first, in the middle, last of those who wait
		synctest.Test(t, func(t *testing.T) {
			var q Queue
			holder := enter(t, &q, "item")
			passed := 0
			for i := range 3 {
				wait := time.Hour
				if i == quitter {
					wait = time.Second
				}
				go func() {
					turn, err := q.Enter(t.Context(), "item", wait)
					if i == quitter {
						if err != ErrNotAcquired {
							t.Errorf("got %v after its wait", err)
						}
						return
					}
					passed++
					turn.Leave()
				}()
				synctest.Wait()
			}
			time.Sleep(time.Minute)
			go func() { // behind whoever is left
				turn := enter(t, &q, "item")
				passed++
				turn.Leave()
			}()
			synctest.Wait()
			holder.Leave()
			synctest.Wait()
			if passed != 3 {
				t.Errorf("%d of 3 passed", passed)
			}
			empty(t, &q)
		})
	}
}

func TestQueueLosesATurnThatComesWithTheEndOfTheWait(t *testing.T) {
	for range 50 { // either may win
		synctest.Test(t, func(t *testing.T) {
			var q Queue
			holder := enter(t, &q, "item")
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				if turn, err := q.Enter(ctx, "item", time.Hour); err == nil {
					turn.Leave()
				} else if !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			}()
			synctest.Wait()
			go cancel()
			go holder.Leave()
			synctest.Wait()
			empty(t, &q)
			enter(t, &q, "item").Leave()
		})
	}
}

func TestQueueIsEnteredTwiceAfterLeavingTwice(t *testing.T) {
	var q Queue
	first := enter(t, &q, "item")
	first.Leave()
	second := enter(t, &q, "item")
	first.Leave()
	if _, err := q.Enter(t.Context(), "item", TryOnce); err != ErrNotAcquired {
		t.Errorf("got %v while the second has the turn", err)
	}
	second.Leave()
	empty(t, &q)
}

func TestLocalFencesRepeatWithinAMicrosecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the clock stands still
		l := NewLocal(LocalOptions{})
		last := uint64(time.Now().UnixMicro()) - 1
		for range 1000 {
			fence := l.nextFence()
			if fence <= last {
				t.Fatalf("fence %d after %d", fence, last)
			}
			last = fence
		}
	})
}

func enter(t *testing.T, q *Queue, key string) *Turn {
	t.Helper()
	turn, err := q.Enter(t.Context(), key, time.Hour)
	if err != nil {
		t.Error(err)
	}
	return turn
}

func empty(t *testing.T, q *Queue) {
	t.Helper()
	if len(q.last) != 0 {
		t.Errorf("%d keys are left behind", len(q.last))
	}
}

func TestQueueHandsOverToWhoHasGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q Queue
		holder, err := q.Enter(t.Context(), "key", time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if _, someone := holder.Choose(); someone {
			t.Error("chose nobody")
		}
		enter := func(ctx context.Context, offer string, entered chan<- *Turn) {
			turn, _ := q.EnterWith(ctx, "key", time.Second, offer)
			entered <- turn
		}
		first, second := make(chan *Turn), make(chan *Turn)
		ctx, leave := context.WithCancel(t.Context())
		go enter(ctx, "first", first)
		synctest.Wait()
		go enter(t.Context(), "second", second)
		synctest.Wait()

		if offer, _ := holder.Choose(); offer != "first" {
			t.Errorf("chose %v", offer)
		}
		leave() // too late: it would leave what it is handed lying about
		synctest.Wait()
		select {
		case <-first:
			t.Fatal("the chosen one didn't wait for what it is handed")
		default:
		}
		holder.HandOver("the lock")
		if _, someone := holder.Choose(); someone {
			t.Error("chose though its turn has ended")
		}
		turn := <-first
		if turn == nil || !turn.Chosen() || turn.Handed() != "the lock" {
			t.Fatalf("the chosen one got %+v", turn)
		}
		turn.Leave()
		if turn = <-second; turn == nil || turn.Chosen() || turn.Handed() != nil {
			t.Errorf("the other one got %+v", turn)
		}
	})
}
