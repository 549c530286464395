package relay_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"flashsale/internal/lock"
	"flashsale/internal/relay"
	"flashsale/internal/stock"
	"flashsale/internal/stock/stocktest"
)

// world is the Redis and the Kafka that several relays share.
type world struct {
	stocktest.World
	entries   map[int][]stock.OutboxEntry
	published map[string]int // events by value, for the check at every deletion
	topic     []stock.Message
	batches   []int
	holders   map[string]*lease
	lastID    int
	faults    []string

	// hook decides on each step; op is read, publish, delete, acquire or release.
	hook func(op string, shard int) stocktest.Fault
}

func newWorld() *world {
	return &world{
		entries: map[int][]stock.OutboxEntry{}, published: map[string]int{}, holders: map[string]*lease{},
		hook: func(string, int) stocktest.Fault { return stocktest.Fine },
	}
}

// add appends an entry with so many events of a sale, numbered from start.
func (w *world) add(shard int, sale string, start, n int) {
	events := make([][]byte, n)
	for i := range events {
		events[i] = fmt.Appendf(nil, `{"sale_id":%q,"n":%d}`, sale, start+i)
	}
	w.addRaw(shard, events...)
}

func (w *world) addRaw(shard int, events ...[]byte) {
	w.Lock()
	defer w.Unlock()
	w.lastID++
	w.entries[shard] = append(w.entries[shard], stock.OutboxEntry{ID: strconv.Itoa(w.lastID), Events: events})
	w.Change()
}

func (w *world) awaitDrained(t *testing.T) {
	t.Helper()
	w.Await(t, "outbox drained", func() bool {
		for _, entries := range w.entries {
			if len(entries) > 0 {
				return false
			}
		}
		return true
	})
}

// check looks at the promises: every event published, in each sale's order,
// and none deleted before.
func (w *world) check(t *testing.T, sales map[string]int) {
	t.Helper()
	w.Lock()
	defer w.Unlock()
	for _, f := range w.faults {
		t.Error(f)
	}
	for sale, n := range sales {
		var first []string
		for _, m := range w.topic {
			if m.Key == sale && !slices.Contains(first, string(m.Value)) {
				first = append(first, string(m.Value))
			}
		}
		var want []string
		for i := range n {
			want = append(want, fmt.Sprintf(`{"sale_id":%q,"n":%d}`, sale, i))
		}
		if !slices.Equal(first, want) {
			t.Errorf("%s: published in the order %v", sale, first)
		}
	}
}

// process is one relay's way to the world, until it dies.
type process struct {
	*world
	name string
	life stocktest.Process
	done chan struct{}
}

// start runs a relay in a process of its own.
func (w *world) start(t *testing.T, name string, change func(*relay.Options)) *process {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	p := &process{world: w, name: name, done: make(chan struct{})}
	p.life = stocktest.Process{World: &w.World, Cancel: cancel, Died: p.leasesEnd}
	o := relay.Options{Outbox: p, Publisher: p, Locker: p, Shards: 2, Batch: 4}
	if change != nil {
		change(&o)
	}
	r, err := relay.New(o)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		if err := r.Run(ctx); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}()
	return p
}

// stop is the orderly end.
func (p *process) stop() {
	p.life.Cancel()
	<-p.done
}

// leasesEnd is what Redis does once the process is dead and a TTL of 5 s has
// passed. The lock is held.
func (p *process) leasesEnd() {
	for _, l := range p.holders {
		if l.owner == p {
			time.AfterFunc(5*time.Second, l.end)
		}
	}
}

// step runs apply, or what the hook makes of it. The caller holds nothing.
func (p *process) step(op string, shard int, apply func() error) error {
	return p.life.Step(func() stocktest.Fault { return p.hook(op, shard) }, apply)
}

func (p *process) Read(_ context.Context, shard int, after string, count int, block time.Duration) ([]stock.OutboxEntry, error) {
	timer := time.NewTimer(block) // like XREAD: the context does not interrupt it
	defer timer.Stop()
	for {
		p.Lock()
		there, changed, dead := len(p.entries[shard]) > 0, p.Changed(), p.life.Dead()
		p.Unlock()
		if there || dead {
			break
		}
		select {
		case <-changed:
			continue
		case <-timer.C:
		}
		return nil, nil
	}
	var read []stock.OutboxEntry
	err := p.step("read", shard, func() error {
		for _, e := range p.entries[shard] {
			if e.ID > after && len(read) < count {
				read = append(read, e)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return read, nil
}

func (p *process) Publish(ctx context.Context, messages []stock.Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	shard := 0
	if len(messages) > 0 && messages[0].Key[len(messages[0].Key)-1]%2 == 1 {
		shard = 1
	}
	return p.step("publish", shard, func() error {
		p.topic = append(p.topic, messages...)
		p.batches = append(p.batches, len(messages))
		for _, m := range messages {
			p.published[string(m.Value)]++
		}
		return nil
	})
}

func (p *process) Delete(ctx context.Context, shard int, ids []string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ids = slices.Clone(ids)
	return p.step("delete", shard, func() error {
		p.entries[shard] = slices.DeleteFunc(p.entries[shard], func(e stock.OutboxEntry) bool {
			if !slices.Contains(ids, e.ID) {
				return false
			}
			for _, event := range e.Events {
				if p.published[string(event)] == 0 && len(event) < 1<<10 {
					p.faults = append(p.faults, "deleted before it was published: "+string(event))
				}
			}
			return true
		})
		return nil
	})
}

func (p *process) Depth(_ context.Context, shard int) (int64, time.Time, error) {
	p.Lock()
	defer p.Unlock()
	n := len(p.entries[shard])
	if n == 0 {
		return 0, time.Time{}, nil
	}
	return int64(n), time.Now().Add(-time.Duration(n) * time.Second), nil
}

// lease of the world's lock. Acquire waits for up to 2 s, as the real one does.
type lease struct {
	key   string
	owner *process
	lost  chan struct{}
	once  sync.Once
}

func (p *process) Acquire(ctx context.Context, key string) (lock.Lease, error) {
	timer := time.NewTimer(2 * time.Second)
	defer timer.Stop()
	for {
		var got *lease
		p.Lock()
		changed := p.Changed()
		p.Unlock()
		err := p.step("acquire", 0, func() error {
			if p.holders[key] == nil {
				got = &lease{key: key, owner: p, lost: make(chan struct{})}
				p.holders[key] = got
			}
			return nil
		})
		switch {
		case err != nil:
			if got != nil { // given back, as the contract asks
				got.end()
			}
			return nil, fmt.Errorf("%w: %w", lock.ErrUnavailable, err)
		case got != nil:
			return got, nil
		}
		select {
		case <-changed:
			// A release wakes the waiters, and so does everything else here;
			// asking again in between keeps the fake simple.
			select {
			case <-time.After(10 * time.Millisecond):
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		case <-timer.C:
			return nil, lock.ErrNotAcquired
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (l *lease) Key() string           { return l.key }
func (l *lease) Fence() uint64         { return 1 }
func (l *lease) Lost() <-chan struct{} { return l.lost }

func (l *lease) Release(context.Context) error {
	return l.owner.step("release", 0, func() error {
		if l.owner.holders[l.key] == l {
			delete(l.owner.holders, l.key)
		}
		return nil
	})
}

// end is what Redis does when the TTL has passed.
func (l *lease) end() {
	w := l.owner.world
	w.Lock()
	defer w.Unlock()
	if w.holders[l.key] == l {
		delete(w.holders, l.key)
	}
	l.once.Do(func() { close(l.lost) })
	w.Change()
}
