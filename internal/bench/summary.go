package bench

import "slices"

// fewest answers must lie above a P99.9, and above every percentile of a curve.
const fewest = 10

// Summary is what the runs of a variant under one load, or of its races, came
// to. Every figure is a median with its range; latencies are in milliseconds.
type Summary struct {
	Variant string  `json:"variant"`
	Model   Model   `json:"model"`
	Users   int     `json:"users"`      // 0 in the open model
	Rate    float64 `json:"rate_per_s"` // that was offered; 0 but in the open model
	Stock   int64   `json:"stock"`
	Runs    int     `json:"runs"`
	Skipped *string `json:"skipped"` // why nothing was measured
	Broken  bool    `json:"broken_on_purpose"`

	Accepted        *Figure `json:"accepted"`
	AcceptedPerS    *Figure `json:"accepted_per_s"` // for as long as there was stock
	OfNoLock        *Figure `json:"of_no_lock"`     // accepted a second to that of none, under the same load in the same run
	AttemptsPerS    *Figure `json:"attempts_per_s"`
	AcceptedLatency Spread  `json:"accepted_latency_ms"`
	SoldOut         *Figure `json:"sold_out"`
	SoldOutPerS     *Figure `json:"sold_out_per_s"` // from the first sold-out answer on; null without any
	SoldOutLatency  Spread  `json:"sold_out_latency_ms"`
	LockWaitP99     *Figure `json:"lock_wait_p99_ms"` // null without a lock
	LockHoldP99     *Figure `json:"lock_hold_p99_ms"`

	Busy         *Figure `json:"busy"`
	GaveUp       *Figure `json:"gave_up"`
	Failed       *Figure `json:"failed"`
	Arrivals     *Figure `json:"arrivals"` // open model, as the next three; null else
	Dropped      *Figure `json:"dropped"`
	DroppedShare *Figure `json:"dropped_share"`
	LagP99       *Figure `json:"generator_lag_p99_ms"`
	CPUShare     *Figure `json:"cpu_share"`

	Oversold     *Figure `json:"oversold"`
	OversellRate *Figure `json:"oversell_rate"`
	Unsold       *Figure `json:"unsold"`
	Undersold    *Figure `json:"undersold"`
	LostUpdates  *Figure `json:"lost_updates"`
	LostShare    *Figure `json:"lost_share"` // of the units that were sold
	Duplicates   *Figure `json:"duplicates"`
	Persisted    *Figure `json:"persisted"`
	Rejected     *Figure `json:"rejected"`
	Settled      bool    `json:"settled"` // every run
}

// Spread is a distribution over several runs. P999 is null unless in each of them
// at least fewest answers were slower: what rests on two or three says nothing.
type Spread struct {
	P50   *Figure       `json:"p50"`
	P90   *Figure       `json:"p90"`
	P95   *Figure       `json:"p95"`
	P99   *Figure       `json:"p99"`
	P999  *Figure       `json:"p99_9"`
	Max   *Figure       `json:"max"`
	Curve []SpreadPoint `json:"curve"` // of those percentiles that every run has
}

// SpreadPoint says that so many percent were answered within Ms.
type SpreadPoint struct {
	Percentile float64 `json:"percentile"`
	Ms         Figure  `json:"ms"`
}

// group is a variant under one load.
type group struct {
	variant string
	load    Load
}

// Summarise joins the samples of each variant and load, in order of appearance.
func Summarise(samples []Sample) []Summary {
	var order []group
	groups := map[group][]Sample{}
	none := map[int]map[Load]float64{} // run -> load -> accepted a second
	for _, s := range samples {
		g := group{s.Variant, s.load()}
		if groups[g] == nil {
			order = append(order, g)
		}
		groups[g] = append(groups[g], s)
		if s.Variant == NoLock && s.Skipped == nil && s.Model != ModelRace {
			if none[s.Run] == nil {
				none[s.Run] = map[Load]float64{}
			}
			none[s.Run][g.load] = s.GoodputPerS
		}
	}
	summaries := make([]Summary, 0, len(order))
	for _, g := range order {
		summary := summarise(groups[g])
		summary.OfNoLock = over(groups[g], func(s Sample) (float64, bool) {
			base := none[s.Run][g.load]
			if base == 0 {
				return 0, false
			}
			return round3(s.GoodputPerS / base), true
		})
		summaries = append(summaries, summary)
	}
	return summaries
}

// over is the figure of those samples that have a value.
func over(samples []Sample, value func(Sample) (float64, bool)) *Figure {
	var values []float64
	for _, s := range samples {
		if v, ok := value(s); ok && s.Skipped == nil {
			values = append(values, v)
		}
	}
	return figure(values)
}

func summarise(samples []Sample) Summary {
	first := samples[0]
	s := Summary{
		Variant: first.Variant, Model: first.Model, Users: first.Users, Rate: first.Rate, Stock: first.Stock,
		Runs: len(samples), Skipped: first.Skipped, Broken: first.Broken, Settled: true,
	}
	if s.Skipped != nil {
		s.Runs, s.Settled = 0, false
		s.AcceptedLatency, s.SoldOutLatency = spread(nil, accepting), spread(nil, refusing)
		return s
	}
	for _, sample := range samples {
		s.Settled = s.Settled && sample.Settled
	}
	count := func(value func(Sample) int64) *Figure {
		return over(samples, func(s Sample) (float64, bool) { return float64(value(s)), true })
	}
	number := func(value func(Sample) float64) *Figure {
		return over(samples, func(s Sample) (float64, bool) { return value(s), true })
	}
	maybe := func(value func(Sample) *float64) *Figure {
		return over(samples, func(s Sample) (float64, bool) {
			if p := value(s); p != nil {
				return *p, true
			}
			return 0, false
		})
	}

	s.Accepted = count(func(s Sample) int64 { return s.Accepted })
	s.AcceptedPerS = number(func(s Sample) float64 { return s.GoodputPerS })
	s.AttemptsPerS = number(func(s Sample) float64 { return s.AttemptsPerS })
	s.AcceptedLatency = spread(samples, accepting)
	s.SoldOut = count(func(s Sample) int64 { return s.SoldOut })
	s.SoldOutPerS = over(samples, func(s Sample) (float64, bool) { return s.SoldOutPerS, s.SoldOut > 0 })
	s.SoldOutLatency = spread(samples, refusing)
	s.LockWaitP99 = maybe(func(s Sample) *float64 { return s.LockWaitP99Ms })
	s.LockHoldP99 = maybe(func(s Sample) *float64 { return s.LockHoldP99Ms })

	s.Busy = count(func(s Sample) int64 { return s.Busy })
	s.GaveUp = count(func(s Sample) int64 { return s.GaveUp })
	s.Failed = count(func(s Sample) int64 { return s.Failed })
	if first.Model == ModelOpen {
		s.Arrivals = count(func(s Sample) int64 { return s.Arrivals })
		s.Dropped = count(func(s Sample) int64 { return s.Dropped })
		s.DroppedShare = over(samples, func(s Sample) (float64, bool) {
			return round3(float64(s.Dropped) / float64(max(1, s.Arrivals))), true
		})
		s.LagP99 = maybe(func(s Sample) *float64 { return s.LagP99Ms })
	}
	s.CPUShare = maybe(func(s Sample) *float64 { return s.CPUShare })

	s.Oversold = count(func(s Sample) int64 { return s.Oversold })
	s.OversellRate = number(func(s Sample) float64 { return round3(s.OversellRate) })
	s.Unsold = count(func(s Sample) int64 { return s.Unsold })
	s.Undersold = count(func(s Sample) int64 { return s.Undersold })
	s.LostUpdates = count(func(s Sample) int64 { return s.LostUpdates })
	s.LostShare = number(func(s Sample) float64 { return round3(float64(s.LostUpdates) / float64(max(1, s.AuditAccepted))) })
	s.Duplicates = count(func(s Sample) int64 { return s.Duplicates })
	s.Persisted = count(func(s Sample) int64 { return s.Persisted })
	s.Rejected = count(func(s Sample) int64 { return s.Rejected })
	return s
}

func accepting(s Sample) Latency { return s.AcceptedLatency }
func refusing(s Sample) Latency  { return s.SoldOutLatency }

func spread(samples []Sample, of func(Sample) Latency) Spread {
	value := func(pick func(Latency) float64) *Figure {
		return over(samples, func(s Sample) (float64, bool) { return pick(of(s)), of(s).Count > 0 })
	}
	s := Spread{
		P50:   value(func(l Latency) float64 { return l.P50 }),
		P90:   value(func(l Latency) float64 { return l.P90 }),
		P95:   value(func(l Latency) float64 { return l.P95 }),
		P99:   value(func(l Latency) float64 { return l.P99 }),
		Max:   value(func(l Latency) float64 { return l.Max }),
		Curve: []SpreadPoint{},
	}
	enough := func(s Sample) bool { return s.Skipped != nil || of(s).Count >= 1000*fewest }
	if !slices.ContainsFunc(samples, func(s Sample) bool { return !enough(s) }) {
		s.P999 = value(func(l Latency) float64 { return l.P999 })
	}
	for _, p := range percentiles {
		var values []float64
		for _, sample := range samples {
			for _, point := range of(sample).Curve {
				if point.Percentile == p {
					values = append(values, point.Ms)
				}
			}
		}
		if len(values) > 0 && len(values) == len(samples) {
			s.Curve = append(s.Curve, SpreadPoint{p, *figure(values)})
		}
	}
	return s
}
