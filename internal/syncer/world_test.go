package syncer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"flashsale/internal/stock"
	"flashsale/internal/syncer"
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

const partitions = 2

// world is the Kafka and the ledger that syncers share. A syncer that starts
// gets everything that is not committed, as after a rebalance.
type world struct {
	mu        sync.Mutex
	log       [partitions][]stock.Message
	committed [partitions]int64
	settled   map[string]int  // times a purchase was stored, not merely known
	stored    map[string]bool // the messages of what is settled
	order     map[string][]string
	dead      []string // reasons, with the messages' values
	sizes     []int
	changed   chan struct{}
	faults    []string

	hook   func(op string) fault // fetch, settle, bury, commit
	refuse map[string]bool       // purchases that the ledger can't store
	during func()                // called in the middle of each settlement
}

func newWorld() *world {
	return &world{
		settled: map[string]int{}, stored: map[string]bool{}, order: map[string][]string{}, changed: make(chan struct{}),
		hook: func(string) fault { return none }, refuse: map[string]bool{}, during: func() {},
	}
}

// failAt is a hook that lets one step fail.
func failAt(step int, f fault) func(string) fault {
	return func(string) fault {
		step--
		if step == -1 {
			return f
		}
		return none
	}
}

func (w *world) add(partition int, values ...[]byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, value := range values {
		w.log[partition] = append(w.log[partition], stock.Message{
			Value: value, Partition: partition, Offset: int64(len(w.log[partition])),
		})
	}
	w.change()
}

// change wakes everyone who waits; mu is held.
func (w *world) change() {
	close(w.changed)
	w.changed = make(chan struct{})
}

func (w *world) await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.NewTimer(2 * time.Hour) // fake
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

func (w *world) awaitCommitted(t *testing.T) {
	t.Helper()
	w.await(t, "everything committed", func() bool {
		for p := range w.log {
			if w.committed[p] < int64(len(w.log[p])) {
				return false
			}
		}
		return true
	})
}

// process is one syncer's way to the world, until it dies.
type process struct {
	*world
	cancel context.CancelFunc
	dead   bool // world's mu
	next   [partitions]int64
	closed bool
	done   chan struct{}
}

// start runs a syncer in a process of its own.
func (w *world) start(t *testing.T, change func(*syncer.Options)) *process {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w.mu.Lock()
	p := &process{world: w, cancel: cancel, next: w.committed, done: make(chan struct{})}
	w.mu.Unlock()
	o := syncer.Options{Source: p, Ledger: p, Batch: 5}
	if change != nil {
		change(&o)
	}
	s, err := syncer.New(o)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		if err := s.Run(ctx); err != nil {
			t.Errorf("run: %v", err)
		}
	}()
	return p
}

// stop is the orderly end.
func (p *process) stop() {
	p.cancel()
	<-p.done
}

// step runs apply, or what the hook makes of it.
func (p *process) step(op string, apply func()) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return errDead
	}
	f := p.hook(op)
	if f == diesBefore || f == diesAfter {
		p.dead = true
		p.cancel()
	}
	if f != refused && f != diesBefore {
		apply()
	}
	p.change()
	switch f {
	case none:
		return nil
	case refused, replyLost:
		return errBroken
	}
	return errDead
}

func (p *process) Fetch(ctx context.Context, max int, _ time.Duration) ([]stock.Message, error) {
	for {
		p.mu.Lock()
		there, changed := p.dead, p.changed
		for i := range p.log {
			there = there || p.next[i] < int64(len(p.log[i]))
		}
		p.mu.Unlock()
		if there {
			break
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	var got []stock.Message
	err := p.step("fetch", func() {
		for i := range p.log {
			for p.next[i] < int64(len(p.log[i])) && len(got) < max {
				got = append(got, p.log[i][p.next[i]])
				p.next[i]++
			}
		}
	})
	if err != nil {
		// What Kafka's client has handed out does not come again to this
		// member, so a source never loses it to an error.
		for _, m := range got {
			p.mu.Lock()
			p.next[m.Partition] = min(p.next[m.Partition], m.Offset)
			p.mu.Unlock()
		}
		return nil, err
	}
	return got, nil
}

func (p *process) Settle(ctx context.Context, events []stock.Event) ([]stock.Verdict, error) {
	p.during()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	verdicts := make([]stock.Verdict, len(events))
	var invalid error
	err := p.step("settle", func() {
		for _, e := range events {
			if p.refuse[e.PurchaseID] {
				invalid = fmt.Errorf("ledger: %w", &stock.InvalidError{Fields: []stock.FieldError{{Field: "purchase_id"}}})
				return
			}
		}
		p.sizes = append(p.sizes, len(events))
		for i, e := range events {
			switch {
			case e.SaleID == "unknown":
				verdicts[i] = stock.VerdictUnknownSale
			case p.settled[e.PurchaseID] > 0:
				verdicts[i] = stock.VerdictKnown
			default:
				p.settled[e.PurchaseID]++
				p.stored[string(value(e.PurchaseID))] = true
				p.order[e.SaleID] = append(p.order[e.SaleID], e.PurchaseID)
				verdicts[i] = stock.VerdictPersisted
			}
		}
	})
	if invalid != nil {
		return nil, invalid
	}
	if err != nil {
		return nil, err
	}
	return verdicts, nil
}

func (p *process) Bury(_ context.Context, m stock.Message, reason string) error {
	return p.step("bury", func() { p.world.dead = append(p.world.dead, reason+" "+string(m.Value)) })
}

func (p *process) Commit(ctx context.Context, messages []stock.Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return p.step("commit", func() {
		for _, m := range messages {
			// All up to here must be in the ledger or buried.
			for _, before := range p.log[m.Partition][:m.Offset+1] {
				if !p.accountedFor(before) {
					p.faults = append(p.faults, fmt.Sprintf("committed %d/%d past %s", m.Partition, m.Offset, before.Value))
				}
			}
			p.committed[m.Partition] = max(p.committed[m.Partition], m.Offset+1)
		}
	})
}

func (w *world) accountedFor(m stock.Message) bool {
	return w.stored[string(m.Value)] || slices.ContainsFunc(w.dead, func(d string) bool {
		return len(d) > len(m.Value) && d[len(d)-len(m.Value):] == string(m.Value)
	})
}

func (p *process) Lag(context.Context) (int64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var lag int64
	for i := range p.log {
		lag += int64(len(p.log[i])) - p.committed[i]
	}
	return lag, nil
}

func (p *process) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	return nil
}

// hanging is a ledger that answers when its caller has given up.
type hanging struct{}

func (hanging) Settle(ctx context.Context, _ []stock.Event) ([]stock.Verdict, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
