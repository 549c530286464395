package redislock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"flashsale/internal/lock"
	"flashsale/internal/lock/locktest"
)

// gate is a hook that holds commands up until it is opened.
type gate struct {
	open chan struct{}

	mu   sync.Mutex
	seen []string // what passed or waits: the digest of each script
}

func (g *gate) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "evalsha" {
			g.mu.Lock()
			g.seen = append(g.seen, cmd.Args()[1].(string))
			g.mu.Unlock()
			<-g.open
		}
		return next(ctx, cmd)
	}
}

func (g *gate) DialHook(next redis.DialHook) redis.DialHook { return next }

func (g *gate) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (g *gate) scripts() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.seen)
}

// batching is a watchdog whose first scripts are held up, so that later ones
// make a batch.
func batching(t *testing.T) (*Watchdog, *redis.Client, *gate) {
	t.Helper()
	addr := realRedis(t)
	client, plain := connect(t, addr), connect(t, addr)
	for _, script := range []*redis.Script{acquireScript, releaseScript, batchScript} {
		if err := script.Load(t.Context(), plain).Err(); err != nil {
			t.Fatal(err)
		}
	}
	g := &gate{open: make(chan struct{})}
	client.AddHook(g)
	return buildWatchdog(t, client, Options{Wait: time.Minute}).(*Watchdog), plain, g
}

func (w *Watchdog) queued() int {
	b := w.protocol.(tokens).batcher
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.waiting)
}

func TestFailureOfOneScriptIsAllOfTheBatchs(t *testing.T) {
	watchdog, client, g := batching(t)
	client.HSet(t.Context(), "lock:{wrong}", "type", "hash")
	const others = 20
	var all sync.WaitGroup
	try := func(key string, want error) {
		all.Go(func() {
			lease, err := watchdog.Acquire(t.Context(), key)
			locktest.Is(t, err, want)
			if err != nil {
				return
			}
			if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	for i := range maxFlights {
		try(fmt.Sprint("first-", i), nil)
	}
	eventually(t, "the first are under way", func() bool { return g.scripts() == maxFlights })
	for i := range others {
		try(fmt.Sprint("other-", i), nil)
	}
	try("wrong", lock.ErrUnavailable)
	eventually(t, "the others wait", func() bool { return watchdog.queued() == others+1 })
	close(g.open)
	all.Wait()
	if n := g.scripts(); n > 2*(others+maxFlights) {
		t.Errorf("%d exchanges for %d cycles", n, others+maxFlights)
	}
	sent := map[string]int{}
	for _, digest := range g.seen {
		sent[digest]++
	}
	alone := maxFlights + attempts - 1 // what fails is tried again
	if sent[acquireScript.Hash()] > alone || sent[batchScript.Hash()] == 0 {
		t.Errorf("what waited went alone: %d of %d", sent[acquireScript.Hash()], others+1+maxFlights)
	}
}

func TestCallersOfABatchLeave(t *testing.T) {
	watchdog, client, g := batching(t)
	var first, gone, rest sync.WaitGroup
	for i := range maxFlights {
		first.Go(func() {
			lease, err := watchdog.Acquire(t.Context(), fmt.Sprint("first-", i))
			if err != nil {
				t.Error(err)
				return
			}
			if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	eventually(t, "the first are under way", func() bool { return g.scripts() == maxFlights })
	ctx, leave := context.WithCancel(t.Context())
	for i := range 5 { // these leave before they are sent
		gone.Go(func() {
			_, err := watchdog.Acquire(ctx, fmt.Sprint("gone-", i))
			locktest.Is(t, err, context.Canceled)
		})
	}
	eventually(t, "they wait", func() bool { return watchdog.queued() == 5 })
	leave()
	gone.Wait() // though nothing is answered
	for i := range 5 {
		rest.Go(func() {
			lease, err := watchdog.Acquire(t.Context(), fmt.Sprint("other-", i))
			if err != nil {
				t.Error(err)
				return
			}
			if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	eventually(t, "the others wait", func() bool { return watchdog.queued() == 5 })
	close(g.open)
	first.Wait()
	rest.Wait()
	if left, err := client.Keys(t.Context(), "lock:*").Result(); len(left) > 0 || err != nil {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

// A caller's deadline passes while its batch is under way, which is then granted.
func TestBatchIsGrantedToWhoHasGone(t *testing.T) {
	client := connect(t, realRedis(t))
	b := &batcher{client: client}
	ctx, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	calls := []*call{
		{script: acquireScript, keys: []string{lockKey, fenceKey}, args: []any{"gone", 60000, 60000}, state: batched, turn: make(chan struct{}, 1)},
		{script: acquireScript, keys: []string{"lock:{other}", "fence:{other}"}, args: []any{"stays", 60000, 60000}, state: batched, turn: make(chan struct{}, 1)},
	}
	if !b.leave(ctx, calls[0]) {
		t.Fatal("a deadline is not waited beyond")
	}
	held := &call{script: extendScript, keys: []string{"lock:{held}"}, args: []any{"holder", 60000}, state: batched, turn: make(chan struct{}, 1)}
	client.Set(t.Context(), "lock:{held}", "holder", time.Minute)
	b.leave(ctx, held)
	calls = append([]*call{held}, calls...)
	b.flights = 1
	b.fly(calls)
	if reply, err := parseAnswer(calls[2].cmd.Result()); err != nil || !reply.granted {
		t.Errorf("the other: %v, %v", reply, err)
	}
	eventually(t, "it is given back", func() bool { return client.Exists(t.Context(), lockKey).Val() == 0 })
	if client.Exists(t.Context(), "lock:{other}", "lock:{held}").Val() != 2 {
		t.Error("another's was given back too")
	}
}

// Who has been sent, or is to be, leaves by a deadline at most; Redis isn't busy
// with too many at a time.
func TestBatchIsLeftOrGrowsWithoutEnd(t *testing.T) {
	client := connect(t, realRedis(t))
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	overdue, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	b := &batcher{client: client, flights: 1}
	for i := range maxCalls + 1 {
		lockKey, fenceKey := defaultKeys(fmt.Sprint("item-", i))
		b.waiting = append(b.waiting, &call{script: acquireScript, keys: []string{lockKey, fenceKey}, args: []any{"token", 60000, 60000}, turn: make(chan struct{}, 1)})
	}
	all := b.waiting
	b.next()
	if b.leave(cancelled, all[0]) {
		t.Error("one that is under way is left by a cancellation")
	}
	for _, c := range all[:maxCalls] {
		<-c.turn
		if reply, err := parseAnswer(c.cmd.Result()); err != nil || !reply.granted {
			t.Errorf("%+v, %v", reply, err)
		}
	}
	last := all[maxCalls]
	<-last.turn // it has a flight of its own, and has to end that
	if last.cmd != nil || b.leave(cancelled, last) || b.leave(overdue, last) {
		t.Errorf("the last one went with the others, or leaves: %v", last.cmd)
	}
	if err := b.alone(t.Context(), last).Err(); err != nil {
		t.Error(err)
	}
	if b.flights != 0 || len(b.waiting) != 0 {
		t.Errorf("%d under way, %d wait", b.flights, len(b.waiting))
	}

	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	b.flights = 1
	b.fly(all[:2])
	for _, c := range all[:2] {
		if !errors.Is(c.cmd.Err(), redis.ErrClosed) {
			t.Errorf("got %v", c.cmd.Err())
		}
	}
}
