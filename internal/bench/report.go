package bench

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Report is all that bench has to say. Whoever has its JSON can make the tables,
// the charts and the verdict again.
type Report struct {
	Partial *string `json:"partial"` // why measurements are missing; null when none is
	Done    int     `json:"measurements_done"`
	Planned int     `json:"measurements_planned"`

	MeasuredAt  time.Time         `json:"measured_at"`
	Command     string            `json:"command"`
	Parameters  Parameters        `json:"parameters"`
	Environment Environment       `json:"environment"`
	InProcess   bool              `json:"in_process"` // the API runs in the generator's own process
	URL         string            `json:"url"`
	Servers     map[string]Server `json:"servers"` // null: whoever runs the API knows
	Remark      string            `json:"remark"`  // on the servers

	Summaries []Summary `json:"summaries"`
	Samples   []Sample  `json:"samples"`
	Faults    []string  `json:"faults"`
}

// Server is one store behind the API.
type Server struct {
	Version string `json:"version"`
	Addr    string `json:"addr"`
	Real    bool   `json:"real"` // false: an embedded stand-in
}

// Parameters are the flags after defaults, in units that their names tell.
type Parameters struct {
	Variants   []string  `json:"variants"`
	Model      Model     `json:"model"`
	Users      []int     `json:"users"`
	Rates      []float64 `json:"rates_per_s"`
	Arrivals   Arrivals  `json:"arrivals,omitempty"`
	InFlight   int       `json:"in_flight_limit,omitempty"`
	Stock      int64     `json:"stock"` // 0: more than can be sold
	WorkMinMs  int64     `json:"work_min_ms"`
	WorkMaxMs  int64     `json:"work_max_ms"`
	WarmUpS    float64   `json:"warm_up_s"`
	DurationS  float64   `json:"duration_s"`
	Runs       int       `json:"runs"`
	RaceUsers  int       `json:"race_users"` // 0: no race
	RaceStock  int64     `json:"race_stock"`
	Seed       uint64    `json:"seed"`
	PatienceS  float64   `json:"patience_s"`
	TimeoutS   float64   `json:"timeout_s"`
	AuditWaitS float64   `json:"audit_wait_s"`
}

// ParametersOf tells what b makes of a plan.
func (b *Bench) ParametersOf(plan Plan) Parameters {
	p := Parameters{
		Variants: plan.Variants, Users: []int{}, Rates: []float64{}, Stock: plan.Stock,
		WorkMinMs: plan.Work.Min.Milliseconds(), WorkMaxMs: plan.Work.Max.Milliseconds(), WarmUpS: plan.WarmUp.Seconds(), DurationS: plan.Duration.Seconds(), Runs: plan.Runs,
		RaceUsers: plan.RaceUsers, RaceStock: plan.RaceStock, Seed: b.options.Seed,
		PatienceS: b.options.Patience.Seconds(), TimeoutS: b.options.Timeout.Seconds(), AuditWaitS: b.options.AuditWait.Seconds(),
	}
	for _, load := range plan.Loads {
		p.Model = load.Model()
		if p.Model == ModelOpen {
			p.Rates = append(p.Rates, load.Rate)
			p.Arrivals, p.InFlight = cmp.Or(plan.Arrivals, Poisson), cmp.Or(plan.InFlight, defaultInFlight)
		} else {
			p.Users = append(p.Users, load.Users)
		}
	}
	return p
}

// Complete fills in what follows from the samples. A nil err means that all
// steps of the plan were made.
func (r *Report) Complete(plan Plan, samples []Sample, err error) {
	r.Samples, r.Summaries, r.Faults = slices.Concat([]Sample{}, samples), Summarise(samples), []string{}
	r.Done, r.Planned = len(samples), len(plan.steps())
	if err != nil {
		reason := err.Error()
		r.Partial = &reason
	}
	for _, sample := range samples {
		for _, fault := range Faults(sample.Row) {
			r.Faults = append(r.Faults, fmt.Sprintf("run %d, %s", sample.Run, fault))
		}
	}
}

// Loads are those of the summaries, in order of appearance.
func Loads(summaries []Summary) (loads []Load) {
	for _, s := range summaries {
		load := Load{Users: s.Users, Rate: s.Rate}
		if s.Model != ModelRace && !slices.Contains(loads, load) {
			loads = append(loads, load)
		}
	}
	return loads
}

// Measured are the variants that weren't skipped, in order of appearance.
func Measured(summaries []Summary) (variants []string) {
	for _, s := range summaries {
		if s.Skipped == nil && !slices.Contains(variants, s.Variant) {
			variants = append(variants, s.Variant)
		}
	}
	return variants
}

// under are the summaries of one load.
func (r *Report) under(load Load) (list []Summary) {
	for _, s := range r.Summaries {
		if s.Model != ModelRace && s.Users == load.Users && s.Rate == load.Rate {
			list = append(list, s)
		}
	}
	return list
}

func (r *Report) races() (list []Summary) {
	for _, s := range r.Summaries {
		if s.Model == ModelRace {
			list = append(list, s)
		}
	}
	return list
}

// String names a load for people.
func (l Load) String() string {
	switch {
	case l.Users == 1:
		return "1 user"
	case l.Users > 0:
		return Thousands(int64(l.Users)) + " users"
	default:
		return rate(l.Rate) + " arrivals/s"
	}
}

func rate(r float64) string {
	if r == float64(int64(r)) {
		return Thousands(int64(r))
	}
	return fmt.Sprint(r)
}

// footer is what the figures belong to.
func (r *Report) footer() []string {
	p := r.Parameters
	lines := r.Environment.lines()
	lines = append(lines, strings.TrimSpace("Servers: "+r.servers()+". "+r.Remark))
	lines = append(lines, "CPU: "+r.cpuNote())
	parameters := []string{"variants " + strings.Join(p.Variants, ", "), "model " + string(p.Model)}
	if p.Model == ModelOpen {
		var rates []string
		for _, r := range p.Rates {
			rates = append(rates, rate(r))
		}
		parameters = append(parameters, "rates "+strings.Join(rates, ", ")+"/s", fmt.Sprintf("%s arrivals, seeded, at most %s in flight", p.Arrivals, Thousands(int64(p.InFlight))))
	} else {
		parameters = append(parameters, "users "+strings.Join(strings.Fields(strings.Trim(fmt.Sprint(p.Users), "[]")), ", "))
	}
	stock := "more than can be sold"
	if p.Stock > 0 {
		stock = Thousands(p.Stock)
	}
	parameters = append(parameters, "stock "+stock)
	if p.WorkMaxMs > 0 {
		parameters = append(parameters, fmt.Sprintf("work %d-%d ms within the critical section", p.WorkMinMs, p.WorkMaxMs))
	} else {
		parameters = append(parameters, "no work within the critical section")
	}
	parameters = append(parameters, fmt.Sprintf("duration %v", seconds(p.DurationS)), fmt.Sprintf("runs %d", p.Runs))
	if p.WarmUpS > 0 {
		parameters = append(parameters, fmt.Sprintf("warm-up %v of each variant, uncounted", seconds(p.WarmUpS)))
	} else {
		parameters = append(parameters, "no warm-up")
	}
	if p.RaceUsers > 0 {
		parameters = append(parameters, fmt.Sprintf("race %s users for %s units", Thousands(int64(p.RaceUsers)), Thousands(p.RaceStock)))
	} else {
		parameters = append(parameters, "no race")
	}
	parameters = append(parameters, fmt.Sprintf("seed %d", p.Seed), fmt.Sprintf("a 423 repeated for up to %v, a request given up after %v, the ledger waited for up to %v",
		seconds(p.PatienceS), seconds(p.TimeoutS), seconds(p.AuditWaitS)))
	lines = append(lines, "Parameters: "+strings.Join(parameters, "; "))
	return append(lines, "Measured: "+r.MeasuredAt.UTC().Format(time.RFC3339), "Command: `"+r.Command+"`")
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func (r *Report) servers() string {
	if r.Servers == nil {
		return "those of the API at " + r.URL + ", which doesn't tell them"
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(r.Servers)) {
		server := r.Servers[name]
		kind := "real"
		if !server.Real {
			kind = "stand-in within this process"
		}
		list = append(list, fmt.Sprintf("%s %s (%s)", name, server.Version, kind))
	}
	return strings.Join(list, ", ")
}

// standIns are those of the servers, as in "redis, sql".
func (r *Report) standIns() string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(r.Servers)) {
		if !r.Servers[name].Real {
			names = append(names, name)
		}
	}
	return and(names)
}

func (r *Report) cpuNote() string {
	if !r.InProcess {
		return "the generator's own share of all processors of the machine it runs on; the API is another process."
	}
	with := "API, relay and syncer"
	if names := r.standIns(); names != "" {
		with += " and the stand-ins for " + names
	}
	return "the share of all processors that this process used: load generator together with " + with + ", which run in it. The generator's own part can't be told apart; --url measures an API of its own process."
}
