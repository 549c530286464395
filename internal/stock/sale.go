package stock

import "time"

// Sale is what is offered: one item, so many units, on these terms. The terms
// do not change once the sale exists, apart from its being closed.
type Sale struct {
	ID           string
	ItemID       string
	Title        string
	PriceCents   int64
	Stock        int64     // units, at the start
	PerUserLimit int64     // units a user may buy
	Variant      string    // name of the lock variant that guards it
	Fencing      bool      // whether the counter checks fences; off only to show what happens then
	StartsAt     time.Time // zero: at once
	EndsAt       time.Time // zero: never by itself
	Work         WorkRange // time spent inside the lock on purpose, for load profiles
}

// WorkRange is a duration drawn at random from [Min, Max]; zero is no work.
type WorkRange struct{ Min, Max time.Duration }

// State says whether a sale sells at some instant.
type State string

const (
	StateScheduled State = "scheduled" // StartsAt is still to come
	StateOpen      State = "open"
	StateClosed    State = "closed" // closed by hand, or EndsAt has passed
)

// StateAt is the sale's state at now, given whether it was closed by hand.
func (s Sale) StateAt(now time.Time, closed bool) State {
	switch {
	case closed, !s.EndsAt.IsZero() && !now.Before(s.EndsAt):
		return StateClosed
	case !s.StartsAt.IsZero() && now.Before(s.StartsAt):
		return StateScheduled
	default:
		return StateOpen
	}
}

// SameTerms reports whether two sales are the same one, created twice. The
// stores keep instants to the microsecond, so that is how they are compared.
func (s Sale) SameTerms(other Sale) bool {
	return sameInstant(s.StartsAt, other.StartsAt) && sameInstant(s.EndsAt, other.EndsAt) &&
		s.withoutWindow() == other.withoutWindow()
}

func sameInstant(a, b time.Time) bool {
	return a.Truncate(time.Microsecond).Equal(b.Truncate(time.Microsecond))
}

func (s Sale) withoutWindow() Sale {
	s.StartsAt, s.EndsAt = time.Time{}, time.Time{}
	return s
}

// Snapshot is what the counter knows of a sale, all read at one instant.
type Snapshot struct {
	Sale
	State     State
	Remaining int64  // units not yet deducted
	Accepted  int64  // units of all accepted purchases
	Cancelled int64  // units given back
	LastFence uint64 // largest fence the counter has seen
}
