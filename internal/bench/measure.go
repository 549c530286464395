package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"flashsale/internal/stock"
)

// measurement is what the users of one measurement share.
type measurement struct {
	client *client
	saleID string

	accepted, soldOut, busy, failed atomic.Int64
	last                            atomic.Int64 // nanoseconds from the start to the last answer

	latency, lockWait, lockHold histogram
	failures                    failures
}

// user is one buyer, a goroutine with a connection.
type user struct {
	*measurement
	name   string
	start  time.Time
	random *rand.Rand
}

// measure makes the sale, lets every user act from the same instant on, and
// completes the row with what was counted and what the audit says.
func (b *Bench) measure(ctx context.Context, row *Row, saleID string, act func(context.Context, *user)) error {
	m := &measurement{client: newClient(b.options.URL, b.options.AdminToken, row.Users, b.options.Timeout), saleID: saleID}
	defer m.client.close()

	b.progress(row, PhaseSetup, m, 0)
	err := m.client.createSale(ctx, newSale{
		ID: saleID, ItemID: saleID, Title: fmt.Sprintf("%s measurement of %s", row.Model, row.Variant),
		PriceCents: 100, Stock: row.Stock, Variant: row.Variant, PerUserLimit: 1,
	})
	if err != nil {
		return err
	}

	took, err := b.run(ctx, row, m, act)
	if err != nil {
		return err
	}
	m.into(row, took)

	b.progress(row, PhaseAudit, m, took)
	report, err := m.client.patient(b.options.AuditWait).audit(ctx, saleID, b.options.AuditWait)
	if err != nil {
		return err
	}
	judge(row, report)
	return nil
}

// judge completes the row with what the audit says.
func judge(row *Row, a stock.Audit) {
	row.AuditAccepted = a.Accepted
	row.Cancelled = a.Cancelled
	row.Persisted = a.Persisted
	row.Rejected = a.Rejected
	row.Oversold = a.Oversold
	row.OversellRate = a.OversellRate()
	row.LostUpdates = a.LostUpdates
	row.Undersold = a.Undersold
	row.Duplicates = a.Duplicates
	row.Settled = a.Settled
	row.Deep = a.Deep
}

// run starts the users and waits for the last of them.
func (b *Bench) run(ctx context.Context, row *Row, m *measurement, act func(context.Context, *user)) (time.Duration, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	var ready, done sync.WaitGroup
	var start time.Time
	begin := make(chan struct{}) // closing it publishes start
	ready.Add(row.Users)
	for i := range row.Users {
		done.Go(func() {
			err := m.client.warm(ctx, m.saleID)
			if err != nil {
				cancel(err) // the first cause stands
			}
			ready.Done()
			<-begin
			if err != nil || ctx.Err() != nil {
				return
			}
			act(ctx, &user{
				measurement: m,
				name:        "u" + strconv.FormatUint(b.options.Seed, 36) + "-" + strconv.Itoa(i),
				start:       start,
				random:      rand.New(rand.NewPCG(b.options.Seed, uint64(i))),
			})
		})
	}
	ready.Wait()
	start = time.Now()
	close(begin)

	finished := make(chan struct{})
	go func() { done.Wait(); close(finished) }()
	b.watch(row, m, start, finished)
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	return time.Duration(m.last.Load()), nil
}

// watch reports progress until the run is finished.
func (b *Bench) watch(row *Row, m *measurement, start time.Time, finished <-chan struct{}) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		b.progress(row, PhaseRun, m, time.Since(start))
		select {
		case <-finished:
			return
		case <-tick.C:
		}
	}
}

func (b *Bench) progress(row *Row, phase Phase, m *measurement, elapsed time.Duration) {
	if b.options.Progress == nil {
		return
	}
	b.options.Progress(Progress{
		Variant: row.Variant, Model: row.Model, Phase: phase, Elapsed: elapsed,
		Attempts: m.attempts(), Accepted: m.accepted.Load(),
	})
}

// purchase repeats one purchase until it is answered or patience, which began
// with its first request, is over. A failed request is not repeated, since it
// is a fault to be counted, but it is paused after: an API that is gone must not
// be hammered.
func (u *user) purchase(ctx context.Context, userID string, patience time.Duration) {
	begun := time.Now()
	for {
		a := u.client.buy(ctx, u.saleID, userID)
		if ctx.Err() != nil {
			return // the measurement is given up, whatever came back
		}
		u.count(a)
		switch a.outcome {
		case accepted, soldOut:
			u.latency.record(time.Since(begun))
			return
		case failed:
			u.pause(ctx)
			return
		}
		u.pause(ctx)
		if ctx.Err() != nil || time.Since(begun) >= patience {
			return
		}
	}
}

// pause is the 5 to 25 ms that a user takes before another request.
func (u *user) pause(ctx context.Context) {
	timer := time.NewTimer(5*time.Millisecond + rand20ms(u.random))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func rand20ms(random *rand.Rand) time.Duration {
	return time.Duration(random.Int64N(int64(20*time.Millisecond) + 1))
}

func (u *user) count(a answer) {
	now := int64(time.Since(u.start))
	for {
		last := u.last.Load()
		if now <= last || u.last.CompareAndSwap(last, now) {
			break
		}
	}
	if a.asked {
		u.lockWait.record(a.wait)
	}
	if a.held {
		u.lockHold.record(a.hold)
	}
	switch a.outcome {
	case accepted:
		u.accepted.Add(1)
	case soldOut:
		u.soldOut.Add(1)
	case busy:
		u.busy.Add(1)
	default:
		u.failed.Add(1)
		u.failures.add(a.failure)
	}
}

func (m *measurement) attempts() int64 {
	return m.accepted.Load() + m.soldOut.Load() + m.busy.Load() + m.failed.Load()
}

// into completes the row with what the users saw in the time that it took.
func (m *measurement) into(row *Row, took time.Duration) {
	row.Accepted, row.SoldOut = m.accepted.Load(), m.soldOut.Load()
	row.Busy, row.Failed = m.busy.Load(), m.failed.Load()
	row.Attempts = m.attempts()
	row.Failures = m.failures.list()
	row.AcceptedPerS = perSecond(row.Accepted, took)
	row.AttemptsPerS = perSecond(row.Attempts, took)
	row.P50Ms = ms(m.latency.quantile(0.50))
	row.P95Ms = ms(m.latency.quantile(0.95))
	row.P99Ms = ms(m.latency.quantile(0.99))
	if !m.lockWait.empty() {
		wait := ms(m.lockWait.quantile(0.99))
		row.LockWaitP99Ms = &wait
	}
	if !m.lockHold.empty() {
		hold := ms(m.lockHold.quantile(0.99))
		row.LockHoldP99Ms = &hold
	}
}
