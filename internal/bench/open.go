package bench

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"sync"
	"time"

	"flashsale/internal/backoff"
)

// Open says how to load a sale with buyers that arrive at a rate, whatever the
// API does. It is how a crowd behaves, and it shows what the closed model hides:
// there, an API that stalls is asked less.
type Open struct {
	Variant  string
	SaleID   string  // of a sale that does not exist yet
	Rate     float64 // arrivals a second, on average
	Arrivals Arrivals
	InFlight int // at most so many buyers at once, the next are dropped; default 1,000
	Duration time.Duration
	Stock    int64 // 0: more than can be sold
	Work     Work
}

// Arrivals is the schedule of the open model.
type Arrivals string

const (
	Poisson  Arrivals = "poisson"  // independent buyers, so that some come close together; seeded; the default
	Constant Arrivals = "constant" // one every 1/rate seconds
)

const (
	// MaxRate is beyond what one process can send.
	MaxRate = 100_000

	defaultInFlight = 1000
)

// CheckOpen refuses an open measurement that can't be made.
func CheckOpen(rate float64, arrivals Arrivals, inFlight int, duration time.Duration) error {
	switch {
	case !(rate > 0 && rate <= MaxRate):
		return fmt.Errorf("bench: rate %v: allowed is more than 0 to %d arrivals a second", rate, MaxRate)
	case arrivals != Poisson && arrivals != Constant:
		return fmt.Errorf("bench: arrivals %q: allowed are %s, %s", arrivals, Poisson, Constant)
	case inFlight < 1 || inFlight > MaxUsers:
		return fmt.Errorf("bench: %d in flight: allowed is 1 to %d", inFlight, MaxUsers)
	}
	return CheckClosed(1, duration)
}

// Open measures one open-model load; see Race for its error.
func (b *Bench) Open(ctx context.Context, open Open) (Row, error) {
	open.Arrivals, open.InFlight = cmp.Or(open.Arrivals, Poisson), cmp.Or(open.InFlight, defaultInFlight)
	if err := CheckOpen(open.Rate, open.Arrivals, open.InFlight, open.Duration); err != nil {
		return Row{}, err
	}
	row := Row{Variant: open.Variant, Model: ModelOpen, Stock: cmp.Or(open.Stock, endless(open.Duration))}
	err := b.measure(ctx, &row, open.SaleID, open.Work, open.InFlight, func(ctx context.Context, m *measurement) error {
		if err := b.connect(ctx, m, open.connections()); err != nil {
			return err
		}
		b.arrive(ctx, m, open)
		return nil
	})
	return row, err
}

// connections is how many are opened beforehand: for a second's arrivals, which
// a crowd needs when answers take a second.
func (o Open) connections() int { return min(o.InFlight, max(1, int(o.Rate))) }

// connect has so many connections open, about, before anything counts.
func (b *Bench) connect(ctx context.Context, m *measurement, connections int) error {
	var wg sync.WaitGroup
	errs := make(chan error, connections)
	for range connections {
		wg.Go(func() { errs <- m.client.warm(ctx, m.saleID) })
	}
	wg.Wait()
	for range connections {
		if err := <-errs; err != nil {
			return err
		}
	}
	return nil
}

// arrive lets buyers in as they are due, and waits for the last of them. A buyer
// that is late because the generator is goes in at once: nothing is left out, and
// latency counts from when it was due.
func (b *Bench) arrive(ctx context.Context, m *measurement, open Open) {
	var done sync.WaitGroup
	defer done.Wait()
	places := make(chan struct{}, open.InFlight)
	m.begin()
	for at := range schedule(open.Arrivals, open.Rate, open.Duration, b.options.Seed) {
		due := m.start.Add(at)
		if !sleepUntil(ctx, due) {
			return
		}
		i := int(m.arrivals.Add(1)) - 1
		select {
		case places <- struct{}{}:
		default:
			m.dropped.Add(1)
			continue
		}
		done.Go(func() {
			defer func() { <-places }()
			m.lag.record(time.Since(due))
			u := b.user(m, i)
			u.purchase(ctx, u.name, b.options.Patience, due)
		})
	}
}

// schedule is when buyers are due, from the start on and before d. It depends on
// nothing that happens meanwhile.
func schedule(arrivals Arrivals, rate float64, d time.Duration, seed uint64) iter.Seq[time.Duration] {
	return func(yield func(time.Duration) bool) {
		random := rand.New(rand.NewPCG(seed, 0))
		gaps := 0.0 // of 1/rate seconds each
		for n := 0; ; n++ {
			if arrivals == Constant {
				gaps = float64(n)
			} else {
				gaps += random.ExpFloat64()
			}
			at := time.Duration(gaps / rate * float64(time.Second))
			if at >= d || !yield(at) {
				return
			}
		}
	}
}

// sleepUntil is false when ctx ended first.
func sleepUntil(ctx context.Context, t time.Time) bool {
	left := time.Until(t)
	if left <= 0 {
		return ctx.Err() == nil
	}
	return backoff.Wait(ctx, left)
}
