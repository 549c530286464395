package redislock

import (
	"context"
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
	if g.seen[maxFlights] != batchScript.Hash() {
		t.Error("what waited went alone")
	}
}

func TestCallersOfABatchLeave(t *testing.T) {
	watchdog, client, g := batching(t)
	var first, rest sync.WaitGroup
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
		rest.Go(func() {
			_, err := watchdog.Acquire(ctx, fmt.Sprint("gone-", i))
			locktest.Is(t, err, context.Canceled)
		})
	}
	eventually(t, "they wait", func() bool { return watchdog.queued() == 5 })
	leave()
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
	eventually(t, "the others wait", func() bool { return watchdog.queued() >= 5 })
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
	b.flights = 1
	b.fly(calls)
	if reply, err := parseAnswer(calls[1].cmd.Result()); err != nil || !reply.granted {
		t.Errorf("the other: %v, %v", reply, err)
	}
	eventually(t, "it is given back", func() bool { return client.Exists(t.Context(), lockKey).Val() == 0 })
	if client.Exists(t.Context(), "lock:{other}").Val() != 1 {
		t.Error("the other's was given back too")
	}
}
