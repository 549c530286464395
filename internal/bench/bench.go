package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"flashsale/internal/stock"
)

// Options say where to measure. Zero values are defaults.
type Options struct {
	URL        string        // of the API, such as http://127.0.0.1:8080; required
	AdminToken string        // to create the sales that are measured
	Seed       uint64        // of user IDs and of every random pause
	Timeout    time.Duration // of one request; default 15 s
	Patience   time.Duration // how long a user repeats after 423; default 10 s
	AuditWait  time.Duration // how long the audit may wait for the sale to settle, 60 s at most; default 30 s
	CloseSales bool          // after the audit: for an API that goes on without us

	// Progress is called about ten times a second while a measurement runs,
	// and when its phase changes, never by two goroutines at once; nil: nobody
	// wants to know.
	Progress func(Progress)
}

// Progress is where a measurement stands.
type Progress struct {
	Variant  string
	Model    Model
	Phase    Phase
	Elapsed  time.Duration // since the common start
	Attempts int64
	Accepted int64
}

// Phase is a part of a measurement.
type Phase string

const (
	PhaseSetup Phase = "setup" // the sale is made, connections are opened
	PhaseRun   Phase = "run"
	PhaseAudit Phase = "audit" // waiting for the ledger, comparing
)

// Race says how to race for the stock of a sale.
type Race struct {
	Variant string
	SaleID  string // of a sale that does not exist yet
	Users   int    // more than Stock
	Stock   int64
	Work    Work
}

// Closed says how to load a sale with users who buy again once answered.
type Closed struct {
	Variant  string
	SaleID   string // of a sale that does not exist yet
	Users    int
	Duration time.Duration
	Stock    int64 // 0: more than can be sold
	Work     Work
}

// Work is time that the API spends in the critical section on purpose, drawn
// from Min to Max, in whole milliseconds.
type Work struct{ Min, Max time.Duration }

// Bench measures one API. Close it to give its connections back.
type Bench struct {
	options Options
}

// MaxUsers bounds what one process can play: each user is a connection. The
// others are what a sale may have.
const (
	MaxUsers = 20_000
	MaxStock = stock.MaxStock
	MaxWork  = stock.MaxWork

	MinDuration = 10 * time.Millisecond
	MaxDuration = time.Hour
)

// New checks the options; it does not talk to the API.
func New(options Options) (*Bench, error) {
	options.Timeout = cmp.Or(options.Timeout, 15*time.Second)
	options.Patience = cmp.Or(options.Patience, 10*time.Second)
	options.AuditWait = cmp.Or(options.AuditWait, 30*time.Second)
	switch {
	case options.URL == "":
		return nil, errors.New("bench: no URL")
	case options.Timeout < 0, options.Patience < 0:
		return nil, errors.New("bench: negative duration")
	case options.AuditWait < 0, options.AuditWait > time.Minute:
		return nil, fmt.Errorf("bench: audit wait %v: allowed is 0s to 60s", options.AuditWait)
	}
	return &Bench{options: options}, nil
}

// CheckRace refuses a race that can't show anything.
func CheckRace(users int, units int64) error {
	switch {
	case users < 1 || users > MaxUsers:
		return fmt.Errorf("bench: %d users: allowed is 1 to %d", users, MaxUsers)
	case units < 1:
		return fmt.Errorf("bench: stock %d: allowed is 1 or more", units)
	case int64(users) <= units:
		return fmt.Errorf("bench: %d users for %d units is no race: nothing can be oversold unless users are more than stock", users, units)
	}
	return nil
}

// CheckClosed refuses a closed measurement that can't be made.
func CheckClosed(users int, duration time.Duration) error {
	switch {
	case users < 1 || users > MaxUsers:
		return fmt.Errorf("bench: %d users: allowed is 1 to %d", users, MaxUsers)
	case duration < MinDuration || duration > MaxDuration:
		return fmt.Errorf("bench: duration %v: allowed is 10ms to 1h", duration)
	}
	return nil
}

// Race measures one race. Its error is about the measurement itself: the sale
// couldn't be made, the audit couldn't be read, ctx ended. What the API did
// wrong under load is in the row, for Faults to judge.
func (b *Bench) Race(ctx context.Context, race Race) (Row, error) {
	if err := CheckRace(race.Users, race.Stock); err != nil {
		return Row{}, err
	}
	row := Row{Variant: race.Variant, Model: ModelRace, Users: race.Users, Stock: race.Stock}
	err := b.measure(ctx, &row, race.SaleID, race.Work, race.Users, func(ctx context.Context, m *measurement) error {
		return b.crowd(ctx, m, race.Users, func(ctx context.Context, u *user) {
			u.purchase(ctx, u.name, b.options.Patience, time.Now())
		})
	})
	row.Unsold = max(0, min(race.Stock, int64(race.Users))-row.Accepted)
	return row, err
}

// Closed measures one closed-model load; see Race for its error.
func (b *Bench) Closed(ctx context.Context, closed Closed) (Row, error) {
	if err := CheckClosed(closed.Users, closed.Duration); err != nil {
		return Row{}, err
	}
	row := Row{Variant: closed.Variant, Model: ModelClosed, Users: closed.Users, Stock: cmp.Or(closed.Stock, endless(closed.Duration))}
	err := b.measure(ctx, &row, closed.SaleID, closed.Work, closed.Users, func(ctx context.Context, m *measurement) error {
		return b.crowd(ctx, m, closed.Users, func(ctx context.Context, u *user) {
			for n := 0; ; n++ {
				left := closed.Duration - time.Since(u.start)
				if left <= 0 || ctx.Err() != nil {
					return
				}
				u.purchase(ctx, fmt.Sprintf("%s-%d", u.name, n), min(left, b.options.Patience), time.Now())
			}
		})
	})
	return row, err
}

// endless is a stock that d can't sell out: more a second than any one process
// sells, and at least a million.
func endless(d time.Duration) int64 {
	return max(1_000_000, int64(math.Ceil(d.Seconds()))*200_000)
}
