package bench

import (
	"math"
	"time"

	"flashsale/internal/stock"
)

// Model names how the load was made.
type Model string

const (
	ModelRace   Model = "race"   // users > stock, one purchase a user, a common start
	ModelClosed Model = "closed" // each user buys again once answered, most often from a stock that can't sell out
	ModelOpen   Model = "open"   // buyers arrive at a rate, whether or not the ones before them have been answered
)

// Row is one measurement of one variant. Its JSON keys are a contract.
type Row struct {
	Variant string `json:"variant"`
	Model   Model  `json:"model"`
	Users   int    `json:"users"`
	Stock   int64  `json:"stock"`

	// Answers, a request each: Attempts = Accepted + SoldOut + Busy + Failed.
	Attempts int64 `json:"attempts"`
	Accepted int64 `json:"accepted"`
	SoldOut  int64 `json:"sold_out"`
	Busy     int64 `json:"busy"`   // 423, whether repeated afterwards or given up
	Failed   int64 `json:"failed"` // anything else

	// Per second from the common start to the last answer.
	AcceptedPerS float64 `json:"accepted_per_s"`
	AttemptsPerS float64 `json:"attempts_per_s"`

	// Units, from the audit, but for Unsold: what is left of a race though
	// there was a user for it.
	Oversold     int64   `json:"oversold"`
	OversellRate float64 `json:"oversell_rate"`
	Undersold    int64   `json:"undersold"`
	Unsold       int64   `json:"unsold"`
	LostUpdates  int64   `json:"lost_updates"`
	Duplicates   int64   `json:"duplicates"`
	Cancelled    int64   `json:"cancelled"`

	// What a buyer waits from the first request of a purchase to its answer,
	// accepted or sold out, repetitions after a 423 included.
	P50Ms float64 `json:"p50_ms"`
	P95Ms float64 `json:"p95_ms"`
	P99Ms float64 `json:"p99_ms"`

	// As the API reports them in Server-Timing; nil without a lock.
	LockWaitP99Ms *float64 `json:"lock_wait_p99_ms"`
	LockHoldP99Ms *float64 `json:"lock_hold_p99_ms"`

	Persisted int64 `json:"persisted"`
	Rejected  int64 `json:"rejected"`
	Settled   bool  `json:"settled"`

	// Skipped is why the variant wasn't measured; nil when it was.
	Skipped *string `json:"skipped"`

	// Broken says that the variant's lock is broken on purpose: it may oversell,
	// and need not.
	Broken bool `json:"-"`

	// For Faults: units that the audit says were accepted, its comparison
	// purchase by purchase, and the first few kinds of failed requests.
	AuditAccepted int64             `json:"-"`
	Deep          *stock.Comparison `json:"-"`
	Failures      []string          `json:"-"`

	Detail Detail `json:"-"` // for reports; see Sample
}

// SkippedRow says why a variant isn't measured here.
func SkippedRow(variant string, model Model, why string) Row {
	return Row{Variant: variant, Model: model, Skipped: &why}
}

// ms is d in milliseconds with microseconds as the last digits.
func ms(d time.Duration) float64 { return round3(float64(d) / float64(time.Millisecond)) }

func round3(x float64) float64 { return math.Round(x*1000) / 1000 }

// perSecond is 0 for a measurement that took no time.
func perSecond(n int64, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return round3(float64(n) / d.Seconds())
}
