// Package relay moves what was deducted from the outbox to Kafka: at least
// once, and a sale's events in the order of their deduction.
//
// Each outbox shard has one leader at a time among all processes, elected by a
// lock. The lock keeps two leaders from doing the work twice; it is not what
// makes the result right. A leader that has outlived its lease only repeats
// what the next one does, and the ledger knows repetitions.
package relay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"flashsale/internal/backoff"
	"flashsale/internal/lock"
	"flashsale/internal/rediskey"
	"flashsale/internal/stock"
)

// Options of a Relay. Outbox, Publisher and Locker are required.
type Options struct {
	Outbox    stock.Outbox
	Publisher stock.Publisher
	Locker    lock.Locker // elects the leader of a shard, under the key LockKey

	Shards int // 0: rediskey.Shards

	// Batch is about how many messages go into one Publish, 1000 by default.
	// An entry is never divided, so it can be more.
	Batch int

	// Block is how long a leader waits for new entries at a time, 250 ms by
	// default. A wait can't be interrupted, so it delays shutdown.
	Block time.Duration

	// Pace is the shortest time from when a read has found something, but less
	// than a whole batch, to the next read; 50 ms by default. What comes in between
	// goes in one Publish, each of which costs Kafka the same however little is in
	// it. After a whole batch, after nothing and after a failure (see RetryMin) it
	// doesn't count.
	Pace time.Duration

	// RetryMin and RetryMax bound the pauses after failures, 50 ms and 2 s by
	// default; they double from one to the other.
	RetryMin, RetryMax time.Duration

	// Yield is how long a leader may fail before it lets another process try,
	// 15 s by default.
	Yield time.Duration

	// Contend is the pause before asking again for a shard that somebody else
	// leads, 250 ms by default, for lockers that don't wait by themselves.
	Contend time.Duration

	Logger *slog.Logger // nil: nobody
}

func (o Options) withDefaults() (Options, error) {
	if o.Outbox == nil || o.Publisher == nil || o.Locker == nil {
		return o, errors.New("relay: outbox, publisher and locker are required")
	}
	for name, value := range map[string]time.Duration{
		"Block": o.Block, "Pace": o.Pace, "RetryMin": o.RetryMin, "RetryMax": o.RetryMax, "Yield": o.Yield,
		"Contend": o.Contend, "Shards": time.Duration(o.Shards), "Batch": time.Duration(o.Batch),
	} {
		if value < 0 {
			return o, fmt.Errorf("relay: %s must not be negative", name)
		}
	}
	o.Shards = cmp.Or(o.Shards, rediskey.Shards)
	o.Batch = cmp.Or(o.Batch, 1000)
	o.Block = cmp.Or(o.Block, 250*time.Millisecond)
	o.Pace = cmp.Or(o.Pace, 50*time.Millisecond)
	o.RetryMin = cmp.Or(o.RetryMin, 50*time.Millisecond)
	o.RetryMax = cmp.Or(o.RetryMax, 2*time.Second)
	o.Yield = cmp.Or(o.Yield, 15*time.Second)
	o.Contend = cmp.Or(o.Contend, 250*time.Millisecond)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o, nil
}

// Relay serves every shard that no other process leads.
type Relay struct{ options Options }

// New checks the options; the Relay does nothing until Run.
func New(o Options) (*Relay, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Relay{o}, nil
}

// LockKey is the key of a shard's lock. It has a dot, so it can't be a sale's.
func LockKey(shard int) string { return "outbox." + strconv.Itoa(shard) }

// Run works until ctx ends, whatever fails meanwhile, and returns nil: all
// shards are released by then, so that another process takes them over at once.
func (r *Relay) Run(ctx context.Context) error {
	var running sync.WaitGroup
	for shard := range r.options.Shards {
		running.Go(func() { r.campaign(ctx, shard) })
	}
	running.Wait()
	return nil
}

// campaign leads a shard whenever it can be had.
func (r *Relay) campaign(ctx context.Context, shard int) {
	log := r.options.Logger.With("shard", shard)
	var failing streak
	for ctx.Err() == nil {
		err := lock.Do(ctx, r.options.Locker, LockKey(shard), func(ctx context.Context, lease lock.Lease) error {
			failing.end()
			log.Debug("leading outbox shard", "fence", lease.Fence())
			l := leader{Options: r.options, log: log, shard: shard, want: r.options.Batch}
			return l.lead(ctx)
		})
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, lock.ErrNotAcquired): // led elsewhere, as it should be
			failing.end()
			backoff.Wait(ctx, backoff.Jitter(r.options.Contend))
		case errors.Is(err, errYield):
			log.Warn("leaving outbox shard to others", "error", err)
			backoff.Wait(ctx, backoff.Jitter(r.options.RetryMax))
		default:
			if failing.begin() {
				log.Warn("outbox shard is without this leader", "error", err)
			}
			backoff.Wait(ctx, failing.delay(r.options.RetryMin, r.options.RetryMax))
		}
	}
}

// streak is a series of failures.
type streak struct {
	failures int
	since    time.Time
}

// begin counts a failure and reports whether it is the first.
func (s *streak) begin() bool {
	s.failures++
	if s.failures > 1 {
		return false
	}
	s.since = time.Now()
	return true
}

// end forgets the failures and returns how many there were.
func (s *streak) end() int {
	n := s.failures
	*s = streak{}
	return n
}

// delay is the pause after the failure counted last.
func (s *streak) delay(least, most time.Duration) time.Duration {
	return backoff.Pause(s.failures, least, most)
}
