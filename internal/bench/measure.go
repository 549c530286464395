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
	row    *Row
	start  time.Time // the common start; cpu is what the process had used by then
	cpu    cpuTime

	accepted, soldOut, busy, failed, gaveUp atomic.Int64
	arrivals, dropped                       atomic.Int64 // open model

	// Nanoseconds from the start to the last answer, the last accepted and the
	// first sold out, the latter plus one so that zero is none.
	last, lastAccepted, firstSoldOut atomic.Int64

	acceptedLatency, soldOutLatency histogram
	lockWait, lockHold              histogram
	lag                             histogram // open model: how late the generator was
	failures                        failures
}

// begin is the instant from which everything counts.
func (m *measurement) begin() { m.cpu, m.start = readCPU(), time.Now() }

// user is one buyer, a goroutine with a connection.
type user struct {
	*measurement
	name   string
	random *rand.Rand
}

// measure makes the sale, puts load on it, and completes the row with what was
// counted and what the audit says.
func (b *Bench) measure(ctx context.Context, row *Row, saleID string, work Work, connections int, load func(context.Context, *measurement) error) error {
	m := &measurement{client: newClient(b.options.URL, b.options.AdminToken, connections, b.options.Timeout), saleID: saleID, row: row}
	defer m.client.close()

	b.progress(PhaseSetup, m, 0)
	err := m.client.createSale(ctx, newSale{
		ID: saleID, ItemID: saleID, Title: fmt.Sprintf("%s measurement of %s", row.Model, row.Variant),
		PriceCents: 100, Stock: row.Stock, Variant: row.Variant, PerUserLimit: 1, Work: work.body(),
	})
	if err != nil {
		return err
	}
	if b.options.CloseSales {
		defer b.closeSale(ctx, m)
	}
	if err := b.run(ctx, m, load); err != nil {
		return err
	}

	b.progress(PhaseAudit, m, time.Duration(m.last.Load()))
	report, err := m.client.patient(b.options.AuditWait).audit(ctx, saleID, b.options.AuditWait)
	if err != nil {
		return err
	}
	judge(row, report)
	return nil
}

// closeSale leaves nothing on sale behind, also when the measurement was given
// up. That it can't is no reason to throw the figures away.
func (b *Bench) closeSale(ctx context.Context, m *measurement) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_ = m.client.closeSale(ctx, m.saleID)
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

// run puts the load on, reports progress meanwhile, and counts.
func (b *Bench) run(ctx context.Context, m *measurement, load func(context.Context, *measurement) error) error {
	ended := make(chan error, 1)
	go func() { ended <- load(ctx, m) }()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	b.progress(PhaseRun, m, 0)
	for begun := time.Now(); ; {
		select {
		case err := <-ended:
			if err == nil && ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			if err == nil {
				m.into(m.row)
			}
			return err
		case <-tick.C:
			b.progress(PhaseRun, m, time.Since(begun))
		}
	}
}

// crowd starts users at one instant, each on a connection of its own, and waits
// for the last of them.
func (b *Bench) crowd(ctx context.Context, m *measurement, users int, act func(context.Context, *user)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	var ready, done sync.WaitGroup
	begin := make(chan struct{}) // closing it publishes m.start
	ready.Add(users)
	for i := range users {
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
			act(ctx, b.user(m, i))
		})
	}
	ready.Wait()
	m.begin()
	close(begin)
	done.Wait()
	return context.Cause(ctx)
}

// user is the i-th of a measurement, the same for the same seed.
func (b *Bench) user(m *measurement, i int) *user {
	return &user{
		measurement: m,
		name:        "u" + strconv.FormatUint(b.options.Seed, 36) + "-" + strconv.Itoa(i),
		random:      rand.New(rand.NewPCG(b.options.Seed, uint64(i))),
	}
}

func (b *Bench) progress(phase Phase, m *measurement, elapsed time.Duration) {
	if b.options.Progress == nil {
		return
	}
	b.options.Progress(Progress{
		Variant: m.row.Variant, Model: m.row.Model, Phase: phase, Elapsed: elapsed,
		Attempts: m.attempts(), Accepted: m.accepted.Load(),
	})
}

// purchase repeats one purchase until it is answered or patience, which began
// with its first request, is over. Its latency counts from since on: in the open
// model that is when the buyer was due, not when the generator got round to it.
// A failed request is not repeated, since it is a fault to be counted, but it is
// paused after: an API that is gone must not be hammered.
func (u *user) purchase(ctx context.Context, userID string, patience time.Duration, since time.Time) {
	begun := time.Now()
	for {
		a := u.client.buy(ctx, u.saleID, userID)
		if ctx.Err() != nil {
			return // the measurement is given up, whatever came back
		}
		u.count(a)
		switch a.outcome {
		case accepted:
			u.acceptedLatency.record(time.Since(since))
			return
		case soldOut:
			u.soldOutLatency.record(time.Since(since))
			return
		case failed:
			u.pause(ctx)
			return
		}
		u.pause(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(begun) >= patience {
			u.gaveUp.Add(1)
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
	atLeast(&u.last, now)
	if a.asked {
		u.lockWait.record(a.wait)
	}
	if a.held {
		u.lockHold.record(a.hold)
	}
	switch a.outcome {
	case accepted:
		u.accepted.Add(1)
		atLeast(&u.lastAccepted, now)
	case soldOut:
		u.soldOut.Add(1)
		u.firstSoldOut.CompareAndSwap(0, now+1)
	case busy:
		u.busy.Add(1)
	default:
		u.failed.Add(1)
		u.failures.add(a.failure)
	}
}

// atLeast raises a to n.
func atLeast(a *atomic.Int64, n int64) {
	for {
		seen := a.Load()
		if n <= seen || a.CompareAndSwap(seen, n) {
			return
		}
	}
}

func (m *measurement) attempts() int64 {
	return m.accepted.Load() + m.soldOut.Load() + m.busy.Load() + m.failed.Load()
}

// into completes the row with what the users saw until the last answer.
func (m *measurement) into(row *Row) {
	took := time.Duration(m.last.Load())
	row.Accepted, row.SoldOut = m.accepted.Load(), m.soldOut.Load()
	row.Busy, row.Failed = m.busy.Load(), m.failed.Load()
	row.Attempts = m.attempts()
	row.Failures = m.failures.list()
	row.AcceptedPerS = perSecond(row.Accepted, took)
	row.AttemptsPerS = perSecond(row.Attempts, took)

	answered := new(histogram)
	answered.add(&m.acceptedLatency)
	answered.add(&m.soldOutLatency)
	row.P50Ms = ms(answered.quantile(0.50))
	row.P95Ms = ms(answered.quantile(0.95))
	row.P99Ms = ms(answered.quantile(0.99))
	row.LockWaitP99Ms = m.lockWait.p99()
	row.LockHoldP99Ms = m.lockHold.p99()
	row.Detail = m.detail(took)
}
