// Package syncer moves events from Kafka into the ledger. Events come at least
// once and are settled once: the ledger knows what it has settled.
//
// An offset is committed when everything before it is in the ledger or, for
// what can never get there, in the dead letter topic. A failing ledger is
// waited for, for as long as it takes; no event is skipped because of it.
package syncer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"flashsale/internal/stock"
)

// Settler is what the syncer needs of a stock.Ledger.
type Settler interface {
	Settle(ctx context.Context, events []stock.Event) ([]stock.Verdict, error)
}

// Options of a Syncer. Source and Ledger are required.
type Options struct {
	Source stock.Source
	Ledger Settler

	// Batch is the most messages settled in one transaction, 2000 by default;
	// Linger is how long to wait for more once there is one, 10 ms by default.
	// Fetch is called for the next batch while one is settled, buried and
	// committed: the source must stand that.
	Batch  int
	Linger time.Duration

	// Timeout bounds one attempt to settle, to bury or to commit, 30 s by
	// default. Grace is how long such an attempt may go on after Run's context
	// has ended, 10 s by default.
	Timeout, Grace time.Duration

	// RetryMin and RetryMax bound the pauses after failures, 100 ms and 5 s by
	// default; they double from one to the other.
	RetryMin, RetryMax time.Duration

	// OnBatch is called when a batch is done with: its offsets are committed,
	// or will be together with a later batch's.
	OnBatch func(Batch)

	Logger *slog.Logger // nil: nobody
}

// Batch says what became of one batch.
type Batch struct {
	Messages int
	Verdicts map[stock.Verdict]int
	Buried   map[string]int // by reason; includes those with VerdictUnknownSale and VerdictRefused
	Took     time.Duration  // from begun to committed
}

func (o Options) withDefaults() (Options, error) {
	if o.Source == nil || o.Ledger == nil {
		return o, errors.New("syncer: source and ledger are required")
	}
	for name, value := range map[string]time.Duration{
		"Batch": time.Duration(o.Batch), "Linger": o.Linger, "Timeout": o.Timeout, "Grace": o.Grace,
		"RetryMin": o.RetryMin, "RetryMax": o.RetryMax,
	} {
		if value < 0 {
			return o, fmt.Errorf("syncer: %s must not be negative", name)
		}
	}
	o.Batch = cmp.Or(o.Batch, 2000)
	o.Linger = cmp.Or(o.Linger, 10*time.Millisecond)
	o.Timeout = cmp.Or(o.Timeout, 30*time.Second)
	o.Grace = cmp.Or(o.Grace, 10*time.Second)
	o.RetryMin = cmp.Or(o.RetryMin, 100*time.Millisecond)
	o.RetryMax = cmp.Or(o.RetryMax, 5*time.Second)
	if o.OnBatch == nil {
		o.OnBatch = func(Batch) {}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o, nil
}

// Syncer is one worker of the group.
type Syncer struct{ options Options }

// New checks the options; the Syncer does nothing until Run.
func New(o Options) (*Syncer, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Syncer{o}, nil
}

// Run settles batch after batch until ctx ends, whatever fails meanwhile. It
// then finishes the batch in hand, unless that needs another try or longer than
// Grace, and leaves the group by closing the source if that is an io.Closer;
// the result is the closing's.
func (s *Syncer) Run(ctx context.Context) error {
	for batch := range s.ahead(ctx) {
		if ctx.Err() != nil {
			continue // not begun: it comes again, to whom has its partitions then
		}
		if err := s.process(ctx, batch); err != nil {
			s.options.Logger.Debug("syncer stops", "error", err, "in_hand", len(batch.messages))
		}
	}
	if closer, ok := s.options.Source.(io.Closer); ok {
		return closer.Close()
	}
	return nil
}

// process takes a batch to its commit: settle, bury, commit, in this order. An
// error says that ctx has ended before that; the batch then comes again, and so
// must every later one.
func (s *Syncer) process(ctx context.Context, batch sifted) error {
	began := time.Now()
	work, cancel := outlive(ctx, s.options.Grace)
	defer cancel()

	done := Batch{Messages: len(batch.messages), Verdicts: map[stock.Verdict]int{}, Buried: map[string]int{}}
	verdicts, err := s.settle(ctx, work, batch.events)
	if err != nil {
		return err
	}
	for i, verdict := range verdicts {
		done.Verdicts[verdict]++
		switch verdict {
		case stock.VerdictUnknownSale:
			batch.poison(batch.from[i], reasonUnknownSale)
		case VerdictRefused:
			batch.poison(batch.from[i], reasonRefused)
		}
	}
	for i, reason := range batch.reasons {
		if reason == "" {
			continue
		}
		if err := s.bury(ctx, work, batch.messages[i], reason); err != nil {
			return err
		}
		done.Buried[reason]++
	}
	if err := s.commit(ctx, work, batch.messages); err != nil {
		return err
	}
	done.Took = time.Since(began)
	s.options.OnBatch(done)
	return nil
}

func (s *Syncer) bury(ctx, work context.Context, message stock.Message, reason string) error {
	err := s.insist(ctx, work, "bury", s.bounded(func(ctx context.Context) error {
		return s.options.Source.Bury(ctx, message, reason)
	}))
	if err == nil {
		s.options.Logger.Warn("message moved to the dead letters", "reason", reason,
			"partition", message.Partition, "offset", message.Offset, "bytes", len(message.Value))
	}
	return err
}

func (s *Syncer) commit(ctx, work context.Context, messages []stock.Message) error {
	return s.insist(ctx, work, "commit", s.bounded(func(ctx context.Context) error {
		return s.options.Source.Commit(ctx, messages)
	}))
}

func (s *Syncer) bounded(do func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, s.options.Timeout)
		defer cancel()
		return do(ctx)
	}
}
