package relay_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"flashsale/internal/lock"
	"flashsale/internal/relay"
	"flashsale/internal/stock"
)

// fault is what goes wrong at one step.
type fault string

const (
	none       fault = ""
	refused    fault = "refused"          // nothing happened, and the caller is told so
	replyLost  fault = "reply lost"       // it happened, and the caller sees an error
	diesBefore fault = "dies before step" // the process is gone, nothing happened
	diesAfter  fault = "dies after step"  // it happened, and the process is gone
)

var (
	errBroken = errors.New("broken")
	errDead   = errors.New("process is dead")
)

// world is the Redis and the Kafka that several relays share.
type world struct {
	mu        sync.Mutex
	entries   map[int][]stock.OutboxEntry
	published map[string]int // events by value, for the check at every deletion
	topic     []stock.Message
	batches   []int
	holders   map[string]*lease
	changed   chan struct{} // closed and replaced at every change
	lastID    int
	faults    []string

	// hook decides on each step; op is read, publish, delete, acquire or release.
	hook func(op string, shard int) fault
}

func newWorld() *world {
	return &world{
		entries: map[int][]stock.OutboxEntry{}, published: map[string]int{}, holders: map[string]*lease{},
		changed: make(chan struct{}), hook: func(string, int) fault { return none },
	}
}

// failAt is a hook that lets one step fail.
func failAt(step int, f fault) func(string, int) fault {
	return func(string, int) fault {
		step--
		if step == -1 {
			return f
		}
		return none
	}
}

// change wakes everyone who waits; mu is held.
func (w *world) change() {
	close(w.changed)
	w.changed = make(chan struct{})
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
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lastID++
	w.entries[shard] = append(w.entries[shard], stock.OutboxEntry{ID: strconv.Itoa(w.lastID), Events: events})
	w.change()
}

// await waits until the condition holds; in fake time, so it costs none.
func (w *world) await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.NewTimer(2 * time.Hour)
	defer deadline.Stop()
	for {
		w.mu.Lock()
		ok, changed := condition(), w.changed
		w.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-deadline.C:
			t.Errorf("still waiting after two hours: %s", what)
			return
		}
	}
}

func (w *world) awaitDrained(t *testing.T) {
	t.Helper()
	w.await(t, "outbox drained", func() bool {
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
	w.mu.Lock()
	defer w.mu.Unlock()
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
	name   string
	cancel context.CancelFunc
	dead   bool // world's mu
	done   chan struct{}
}

// start runs a relay in a process of its own.
func (w *world) start(t *testing.T, name string, change func(*relay.Options)) *process {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	p := &process{world: w, name: name, cancel: cancel, done: make(chan struct{})}
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
	p.cancel()
	<-p.done
}

// die is SIGKILL: nothing that the process does from now on has an effect, and
// its leases end by themselves after 5 s. mu is held.
func (p *process) die() {
	p.dead = true
	p.cancel()
	for _, l := range p.holders {
		if l.owner == p {
			time.AfterFunc(5*time.Second, l.end)
		}
	}
}

// step runs apply, or what the hook makes of it. The caller holds nothing.
func (p *process) step(op string, shard int, apply func() error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return errDead
	}
	f := p.hook(op, shard)
	switch f {
	case refused:
		return errBroken
	case diesBefore:
		p.die()
		return errDead
	}
	err := apply()
	p.change()
	switch f {
	case replyLost:
		return errBroken
	case diesAfter:
		p.die()
		return errDead
	}
	return err
}

func (p *process) Read(_ context.Context, shard int, after string, count int, block time.Duration) ([]stock.OutboxEntry, error) {
	timer := time.NewTimer(block) // like XREAD: the context does not interrupt it
	defer timer.Stop()
	for {
		p.mu.Lock()
		there, changed, dead := len(p.entries[shard]) > 0, p.changed, p.dead
		p.mu.Unlock()
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
	p.mu.Lock()
	defer p.mu.Unlock()
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
		p.mu.Lock()
		changed := p.changed
		p.mu.Unlock()
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
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.holders[l.key] == l {
		delete(w.holders, l.key)
	}
	l.once.Do(func() { close(l.lost) })
	w.change()
}
