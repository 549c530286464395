package syncer_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"flashsale/internal/stock"
	"flashsale/internal/stock/stocktest"
	"flashsale/internal/syncer"
)

const partitions = 2

// world is the Kafka and the ledger that syncers share. A syncer that starts
// gets everything that is not committed, as after a rebalance.
type world struct {
	stocktest.World
	log       [partitions][]stock.Message
	committed [partitions]int64
	settled   map[string]int  // times a purchase was stored, not merely known
	stored    map[string]bool // the messages of what is settled
	order     map[string][]string
	dead      []string // reasons, with the messages' values
	sizes     []int
	faults    []string

	hook   func(op string) stocktest.Fault // fetch, settle, bury, commit
	refuse map[string]bool                 // purchases that the ledger can't store
	during func()                          // called in the middle of each settlement
}

func newWorld() *world {
	return &world{
		settled: map[string]int{}, stored: map[string]bool{}, order: map[string][]string{},
		hook: func(string) stocktest.Fault { return stocktest.Fine }, refuse: map[string]bool{}, during: func() {},
	}
}

func (w *world) add(partition int, values ...[]byte) {
	w.Lock()
	defer w.Unlock()
	for _, value := range values {
		w.log[partition] = append(w.log[partition], stock.Message{
			Value: value, Partition: partition, Offset: int64(len(w.log[partition])),
		})
	}
	w.Change()
}

func (w *world) awaitCommitted(t *testing.T) {
	t.Helper()
	w.Await(t, "everything committed", func() bool {
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
	life   stocktest.Process
	next   [partitions]int64
	closed bool
	done   chan struct{}
}

// start runs a syncer in a process of its own.
func (w *world) start(t *testing.T, change func(*syncer.Options)) *process {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w.Lock()
	p := &process{world: w, next: w.committed, done: make(chan struct{})}
	p.life = stocktest.Process{World: &w.World, Cancel: cancel}
	w.Unlock()
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
	p.life.Cancel()
	<-p.done
}

// step runs apply, or what the hook makes of it.
func (p *process) step(op string, apply func()) error {
	return p.life.Step(func() stocktest.Fault { return p.hook(op) }, func() error { apply(); return nil })
}

func (p *process) Fetch(ctx context.Context, max int, _ time.Duration) ([]stock.Message, error) {
	for {
		p.Lock()
		there, changed := p.life.Dead(), p.Changed()
		for i := range p.log {
			there = there || p.next[i] < int64(len(p.log[i]))
		}
		p.Unlock()
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
			p.Lock()
			p.next[m.Partition] = min(p.next[m.Partition], m.Offset)
			p.Unlock()
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
	return p.step("bury", func() { p.dead = append(p.dead, reason+" "+string(m.Value)) })
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

func (p *process) Close() error {
	p.Lock()
	defer p.Unlock()
	p.closed = true
	return nil
}

// hanging is a ledger that answers when its caller has given up.
type hanging struct{}

func (hanging) Settle(ctx context.Context, _ []stock.Event) ([]stock.Verdict, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
