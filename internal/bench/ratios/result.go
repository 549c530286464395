//go:build unix

package main

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"
)

// result is what is printed; its keys are a contract. Nil: not measured, since
// something failed before.
type result struct {
	CombiningOverNone      *float64 `json:"combining_over_none"`
	AtomicOverGin          *float64 `json:"atomic_over_gin"`
	AtomicOverSingleScript *float64 `json:"atomic_over_single_script"`
	WatchdogOverSetnx      *float64 `json:"watchdog_over_setnx"`
	SyncerOverBareInsert   *float64 `json:"syncer_over_bare_insert"`
	LedgerP99              *float64 `json:"ledger_p99_ms"`
	TwoAPIOverOne          *float64 `json:"two_api_over_one"`

	Raw raw `json:"raw"`
}

// raw are the figures that the ratios are made of.
type raw struct {
	Paths      map[string]*figures `json:"paths"` // by what was measured
	SyncerRows []float64           `json:"syncer_rows_per_s"`
	BareRows   []float64           `json:"bare_insert_rows_per_s"`
	HalfRate   float64             `json:"ledger_arrivals_per_s"` // while the delay was measured
	LedgerP50  float64             `json:"ledger_p50_ms"`
	Sampled    int                 `json:"ledger_samples"`
	Oversold   int64               `json:"oversold"`
	Lost       int64               `json:"lost"` // lost updates, undersold, duplicates
	Audited    int                 `json:"audited_sales"`
	Failures   []string            `json:"failures,omitempty"`
	Cores      int                 `json:"cores"`
	Seconds    float64             `json:"seconds"`
}

// figures are one path's, an element a round.
type figures struct {
	Rate      []float64 `json:"accepted_per_s"`
	P50       []float64 `json:"p50_ms"`
	P99       []float64 `json:"p99_ms"`
	Busy      []int     `json:"busy"`
	Generator []float64 `json:"generator_cpu_share"` // of all cores

	// Where Linux tells it, by process: api, redis, kafka, generator.
	Spent map[string][]float64 `json:"cpu_us_per_purchase,omitempty"`
	Idle  []float64            `json:"idle_share,omitempty"` // of all cores
}

// share is the part of the machine that the generator took.
func share(s *shot) float64 {
	return s.CPU.Seconds() / s.Elapsed.Seconds() / float64(runtime.NumCPU())
}

func (r *result) add(path string, s *shot) {
	if r.Raw.Paths == nil {
		r.Raw.Paths = map[string]*figures{}
	}
	f := r.Raw.Paths[path]
	if f == nil {
		f = &figures{}
		r.Raw.Paths[path] = f
	}
	f.Rate = append(f.Rate, s.rate())
	f.P50 = append(f.P50, milliseconds(s.percentile(.5)))
	f.P99 = append(f.P99, milliseconds(s.percentile(.99)))
	f.Busy = append(f.Busy, s.Busy)
	f.Generator = append(f.Generator, share(s))
	if s.Spent.Each == nil {
		return
	}
	if f.Spent == nil {
		f.Spent = map[string][]float64{}
	}
	for name, each := range s.Spent.Each {
		f.Spent[name] = append(f.Spent[name], each)
	}
	f.Idle = append(f.Idle, s.Spent.Idle)
}

// spenders are those whose CPU time is reported, in the order of the columns.
var spenders = []string{"api", "redis", "kafka", "generator"}

// spent is the medians of the rounds.
func (f *figures) spent() spent {
	if f.Spent == nil {
		return spent{}
	}
	s := spent{Each: map[string]float64{}, Idle: median(f.Idle)}
	for name, rounds := range f.Spent {
		s.Each[name] = median(rounds)
	}
	return s
}

// String is the end of a line of the table, in microseconds a purchase.
func (s spent) String() string {
	if s.Each == nil {
		return ""
	}
	line := " |"
	for _, name := range spenders {
		if each, known := s.Each[name]; known {
			line += fmt.Sprintf(" %5.1f", each)
		} else {
			line += "     -"
		}
	}
	return line + fmt.Sprintf(", idle %2.0f %%", 100*s.Idle)
}

// rate is 0 for a path that was not measured.
func (r *result) rate(path string) float64 { return median(r.rates(path)) }

func (r *result) rates(path string) []float64 {
	if f := r.Raw.Paths[path]; f != nil {
		return f.Rate
	}
	return nil
}

func (r *result) finish() {
	over := func(a, b string) *float64 { return ratio(r.rates(a), r.rates(b)) }
	r.CombiningOverNone = over("watchdog-combining", "none")
	r.AtomicOverGin = over("atomic", "gin")
	r.AtomicOverSingleScript = over("atomic", "atomic_single_script")
	r.WatchdogOverSetnx = over("watchdog", "setnx")
	r.SyncerOverBareInsert = ratio(r.Raw.SyncerRows, r.Raw.BareRows)
	r.TwoAPIOverOne = over("two_apis", "one_api")
	r.Raw.Cores = runtime.NumCPU()
}

// ratio is the median of the rounds' ratios: what drifts on the machine in the
// meantime hits both sides of a round. A round that only one side has, or in
// which the other side did nothing at all, has no ratio; nil: no round has one.
func ratio(a, b []float64) *float64 {
	var ratios []float64
	for i := range min(len(a), len(b)) {
		if b[i] > 0 {
			ratios = append(ratios, a[i]/b[i])
		}
	}
	if ratios == nil {
		return nil
	}
	return new(median(ratios))
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	if len(sorted) == 0 {
		return 0
	}
	return sorted[len(sorted)/2]
}

const notMeasured = "not measured"

func (r *result) print(w io.Writer) {
	fmt.Fprintf(w, "\n%-22s %9s %9s %9s %9s %10s", "one hot item", "accepted/s", "p50 ms", "p99 ms", "423 busy", "generator")
	fmt.Fprintf(w, " | CPU us a purchase: %s\n", strings.Join(spenders, ", "))
	names := []string{"one_api", "two_apis"}
	for i := len(paths) - 1; i >= 0; i-- {
		names = slices.Insert(names, 0, paths[i].name)
	}
	for _, name := range names {
		f := r.Raw.Paths[name]
		if f == nil {
			fmt.Fprintf(w, "%-22s %s\n", name, notMeasured)
			continue
		}
		busy := 0
		for _, n := range f.Busy {
			busy += n
		}
		fmt.Fprintf(w, "%-22s %9.0f %9.2f %9.2f %9d %8.0f %%%s\n", name, median(f.Rate), median(f.P50), median(f.P99), busy, 100*median(f.Generator), f.spent())
	}
	printRows := func(name string, rows []float64) {
		if rows == nil {
			fmt.Fprintf(w, "%-22s %s\n", name, notMeasured)
			return
		}
		fmt.Fprintf(w, "%-22s %9.0f rows/s\n", name, median(rows))
	}
	printRows("syncer", r.Raw.SyncerRows)
	printRows("bare insert", r.Raw.BareRows)

	var overAccepted *float64
	if accepted := r.rate("atomic"); accepted > 0 && r.Raw.SyncerRows != nil {
		overAccepted = new(median(r.Raw.SyncerRows) / accepted)
	}
	delay := "201 to row, p99 in ms"
	if r.LedgerP99 != nil {
		delay = fmt.Sprintf("%s, at %.0f/s", delay, r.Raw.HalfRate)
	}
	fmt.Fprintf(w, "\n%-48s %12s %9s\n", "ratio (median of the rounds')", "measured", "target")
	for _, line := range []struct {
		what           string
		value          *float64
		target         float64
		below, noLimit bool
	}{
		{what: "watchdog-combining / none", value: r.CombiningOverNone, target: 2},
		{what: "atomic / Gin without back end", value: r.AtomicOverGin, target: .85},
		{what: "atomic / one script call per request", value: r.AtomicOverSingleScript, target: 2},
		{what: "watchdog / setnx", value: r.WatchdogOverSetnx, target: 2},
		{what: "syncer / bare multi-row insert", value: r.SyncerOverBareInsert, target: .8},
		{what: "syncer / what the API accepts", value: overAccepted, target: 1},
		{what: delay, value: r.LedgerP99, target: 1000, below: true},
		{what: "two APIs / one", value: r.TwoAPIOverOne, noLimit: true},
	} {
		measured, target, verdict := notMeasured, fmt.Sprintf(">= %g", line.target), ""
		if line.below {
			target = fmt.Sprintf("< %g", line.target)
		}
		if line.noLimit {
			target = "stated"
		}
		if line.value != nil {
			measured = fmt.Sprintf("%.2f", *line.value)
			if !line.noLimit && (*line.value < line.target) != line.below {
				verdict = "  MISSED"
			}
		}
		fmt.Fprintf(w, "%-48s %12s %9s%s\n", line.what, measured, target, verdict)
	}
	sound := "oversold and lost: " + notMeasured
	if r.Raw.Audited > 0 {
		sound = fmt.Sprintf("oversold %d, lost %d, in %d sales audited", r.Raw.Oversold, r.Raw.Lost, r.Raw.Audited)
	}
	fmt.Fprintf(w, "\n%s; %d cores shared by generator, API, Redis, Kafka, MariaDB; %s\n", sound, r.Raw.Cores, time.Duration(r.Raw.Seconds*float64(time.Second)).Round(time.Second))
	for _, f := range r.Raw.Failures {
		fmt.Fprintln(w, "FAILED:", f)
	}
}
