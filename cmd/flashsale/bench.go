package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"flashsale/internal/app"
	"flashsale/internal/bench"
)

const (
	maxRuns        = 100
	benchAuditWait = time.Minute // a fast variant leaves the ledger some work
)

// benchOptions are the flags of bench.
type benchOptions struct {
	targetOptions
	json      bool
	out       string
	variants  string
	model     string
	users     int
	rates     []float64
	arrivals  string
	inFlight  int
	stock     int64
	work      string
	duration  time.Duration
	warmUp    time.Duration
	runs      int
	raceUsers int
	raceStock int64
	seed      uint64
}

func (p *program) benchCommand() *cobra.Command {
	var o benchOptions
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure variants under load, in interleaved runs, and write a report with charts",
		Long: `Measure variants under load, in interleaved runs, and report medians with their
range: goodput (accepted/s, never attempts alone), latency of accepted and of
sold-out answers apart, oversell, undersell and lost updates. Each measurement
has a sale of its own, which is audited purchase by purchase.

Where: without --url the whole stack runs in this process, as in the demo, on a
stand-in for each server that is not given; its CPU is then that of generator and
stack together. With --url a running API is measured and audited over HTTP.
Load nobody's API but your own.

How: in each run, every variant first races (--race-users for --race-stock units,
all at once: who oversells?), then is put under load:
  closed  --users buy again as soon as they are answered; a slow API is asked less
  open    buyers arrive at --rate per second whatever the API does; latency counts
          from when a buyer was due, and those beyond --in-flight are dropped and
          counted. Several rates give P99 against rate.

Exit code 1: a safe variant oversold, lost or duplicated something or did not
settle, requests failed, or no lock was asked for and did not oversell in the
race. After Ctrl-C (130) what was measured is reported, as partial.`,
		Example: `  flashsale bench --runs 3 --out out/bench
  flashsale bench --variants none,atomic --model open --rate 200,400,800 --duration 10s --out out/open
  flashsale bench --variants setnx,watchdog --work 5ms-20ms --users 32
  FLASHSALE_ADMIN_TOKEN=... flashsale bench --url http://127.0.0.1:8080 --json
  flashsale bench article`,
		Args: arguments(),
		RunE: func(c *cobra.Command, _ []string) error {
			plan, err := o.plan(c.Flags())
			if err != nil {
				return err
			}
			if err := o.targetOptions.check(c.Flags(), p.getenv); err != nil {
				return err
			}
			return p.bench(c.Context(), o, plan)
		},
	}
	f := c.Flags()
	f.SortFlags = false
	f.StringVar(&o.variants, "variants", strings.Join(defaultVariants, ","), "what to measure, separated by commas, or all: "+strings.Join(app.Variants(), ", "))
	f.StringVar(&o.model, "model", string(bench.ModelClosed), "closed or open")
	f.IntVar(&o.users, "users", closedUsers, "users of the closed model")
	f.Float64SliceVar(&o.rates, "rate", nil, "arrivals per second of the open model, several separated by commas")
	f.StringVar(&o.arrivals, "arrivals", string(bench.Poisson), "of the open model: poisson (at random, from --seed) or constant")
	f.IntVar(&o.inFlight, "in-flight", 1000, "of the open model: at most so many buyers at once")
	f.Int64Var(&o.stock, "stock", 0, "units of the sale under load; 0: more than can be sold. With fewer, accepted/s counts until it is sold out")
	f.StringVar(&o.work, "work", "", "time spent within the critical section on purpose, such as 50ms-200ms; at most 10s, whole milliseconds")
	f.DurationVar(&o.duration, "duration", 5*time.Second, "of each load")
	f.IntVar(&o.runs, "runs", 3, "how often everything is measured")
	f.DurationVar(&o.warmUp, "warm-up", time.Second, "of each variant before the first run, uncounted; 0: none")
	f.IntVar(&o.raceUsers, "race-users", 300, "users of the race, more than --race-stock; 0: no race")
	f.Int64Var(&o.raceStock, "race-stock", 100, "units that they race for")
	f.Uint64Var(&o.seed, "seed", 0, "of user IDs, arrivals and pauses; 0: at random")
	f.BoolVar(&o.json, "json", false, "print the report as one JSON object, and nothing else on stdout")
	f.StringVar(&o.out, "out", "", "folder for report.md, report.json and the charts (SVG, PNG); a new one within it when it is not empty")
	o.targetOptions.addFlags(f)
	c.AddCommand(p.articleCommand())
	return c
}

// plan is what the flags ask for, or what is wrong with them.
func (o *benchOptions) plan(f *pflag.FlagSet) (bench.Plan, error) {
	plan := bench.Plan{Runs: o.runs, WarmUp: o.warmUp, Duration: o.duration, Stock: o.stock, RaceUsers: o.raceUsers, RaceStock: o.raceStock}
	var err error
	if plan.Variants, err = parseVariants(o.variants); err != nil {
		return plan, err
	}
	switch bench.Model(o.model) {
	case bench.ModelClosed:
		for _, name := range []string{"rate", "arrivals", "in-flight"} {
			if f.Changed(name) {
				return plan, usage("--%s: only with --model open", name)
			}
		}
		if err := bench.CheckClosed(o.users, o.duration); err != nil {
			return plan, usage("--users, --duration: %w", err)
		}
		plan.Loads = []bench.Load{{Users: o.users}}
	case bench.ModelOpen:
		if f.Changed("users") {
			return plan, usage("--users: only with --model closed; --in-flight bounds the open model")
		}
		if len(o.rates) == 0 {
			return plan, usage("--rate is missing: with --model open it says how many buyers arrive per second, such as 200 or 200,400,800")
		}
		plan.Arrivals, plan.InFlight = bench.Arrivals(o.arrivals), o.inFlight
		for _, rate := range o.rates {
			if err := bench.CheckOpen(rate, plan.Arrivals, o.inFlight, o.duration); err != nil {
				return plan, usage("--rate, --arrivals, --in-flight, --duration: %w", err)
			}
			for _, load := range plan.Loads {
				if load.Rate == rate {
					return plan, usage("--rate: %v is there twice", rate)
				}
			}
			plan.Loads = append(plan.Loads, bench.Load{Rate: rate})
		}
	default:
		return plan, usage("--model: unknown model %q: allowed are closed, open", o.model)
	}
	switch {
	case o.runs < 1 || o.runs > maxRuns:
		return plan, usage("--runs: %d: allowed is 1 to %d", o.runs, maxRuns)
	case o.warmUp != 0 && (o.warmUp < bench.MinDuration || o.warmUp > bench.MaxDuration):
		return plan, usage("--warm-up: %v: allowed is 0, or %v to %v", o.warmUp, bench.MinDuration, bench.MaxDuration)
	case o.stock < 0 || o.stock > bench.MaxStock:
		return plan, usage("--stock: %d: allowed is 0 to %d", o.stock, bench.MaxStock)
	case o.raceUsers == 0 && f.Changed("race-stock"):
		return plan, usage("--race-stock: not with --race-users 0, which means no race")
	}
	if o.raceUsers == 0 {
		plan.RaceStock = 0
	} else if err := bench.CheckRace(o.raceUsers, o.raceStock); err != nil {
		return plan, usage("--race-users, --race-stock: %w", err)
	}
	plan.Work, err = parseWork(o.work)
	return plan, err
}

// parseWork reads a range of durations; bare numbers are milliseconds.
func parseWork(text string) (bench.Work, error) {
	if text == "" {
		return bench.Work{}, nil
	}
	low, high, isRange := strings.Cut(text, "-")
	if !isRange {
		high = low
	}
	parse := func(s string) (time.Duration, error) {
		s = strings.TrimSpace(s)
		if s != "" && strings.Trim(s, "0123456789") == "" {
			s += "ms"
		}
		return time.ParseDuration(s)
	}
	first, errLow := parse(low)
	last, errHigh := parse(high)
	wrong := errors.Join(errLow, errHigh) != nil || first < 0 || last < first || last > bench.MaxWork ||
		first%time.Millisecond != 0 || last%time.Millisecond != 0
	if wrong {
		return bench.Work{}, usage("--work: %q: allowed is MIN-MAX, such as 50ms-200ms, in whole milliseconds from 0ms to %v", text, bench.MaxWork)
	}
	return bench.Work{Min: first, Max: last}, nil
}

func (p *program) bench(ctx context.Context, o benchOptions, plan bench.Plan) (err error) {
	folder, err := openFolder(o.out)
	if err != nil {
		return err
	}
	defer func() { err = folder.closeAfter(err) }()
	m := measurement{program: p, targetOptions: o.targetOptions, json: o.json, seed: o.seed, title: "flashsale bench"}
	report, screen, err := m.make(ctx, plan)
	if report == nil {
		return err
	}
	if o.json {
		err = errors.Join(err, p.printJSON(report))
	} else {
		screen.say("")
		err = errors.Join(err, report.WriteMarkdown(screen.out, nil))
	}
	if o.out == "" {
		screen.say("\n--out DIR writes this as report.md and report.json, with charts.")
	} else if writeErr := folder.write(report); writeErr != nil {
		err = errors.Join(err, writeErr)
	} else {
		screen.say("\nWritten to %s%s: %s", folder.path, folder.remark, strings.Join(folder.written, ", "))
	}
	return err
}

// measurement is one call of bench or bench article.
type measurement struct {
	*program
	targetOptions
	json  bool
	seed  uint64
	title string
}

// make measures. There is a report unless nothing at all was measured; the error
// is why it is partial, or the faults that were found.
func (m measurement) make(ctx context.Context, plan bench.Plan) (report *bench.Report, s *screen, err error) {
	out := m.stdout
	if m.json {
		out = m.stderr // stdout is for the object alone
	}
	s = newScreen(out, m.stderr)
	s.bar = true
	seed := cmp.Or(m.seed, rand.Uint64()>>1)
	s.say("%s: %s; runs %d, seed %d", m.title, strings.Join(plan.Variants, ", "), plan.Runs, seed)

	t, err := m.open(ctx, m.program, s)
	if err != nil {
		return nil, s, err
	}
	defer func() { err = t.closeAfter(err) }()
	b, err := bench.New(bench.Options{
		URL: t.url, AdminToken: t.token, Seed: seed, AuditWait: benchAuditWait,
		CloseSales: !t.inProcess, Progress: s.progress,
	})
	if err != nil {
		return nil, s, err
	}
	report = &bench.Report{
		MeasuredAt: time.Now().UTC().Truncate(time.Second), Command: commandLine(m.args), Parameters: b.ParametersOf(plan),
		Environment: bench.Here(ctx), InProcess: t.inProcess, URL: t.url, Servers: t.servers, Remark: t.remark,
	}
	samples, err := b.Run(ctx, plan, bench.Stage{
		SaleID: t.saleID, Lacking: t.lacking, Broken: app.Broken, Cause: t.cause,
		Begin: func(step bench.Step) {
			s.step(step.N, step.Of)
			s.what, s.expected = describeStep(step), plan.Duration
		},
		Done: func(_ bench.Step, sample bench.Sample) { s.finished(sample.Row) },
	})
	s.clear()
	if len(samples) == 0 {
		return nil, s, err
	}
	if errors.Is(err, context.Canceled) {
		report.Complete(plan, samples, errors.New("interrupted"))
	} else {
		report.Complete(plan, samples, err)
	}
	return report, s, errors.Join(err, faults(report.Faults))
}

func describeStep(step bench.Step) string {
	if step.Run == 0 {
		return "warm-up, " + step.Variant
	}
	if step.Load.Model() == bench.ModelRace {
		return fmt.Sprintf("run %d, %s race", step.Run, step.Variant)
	}
	return fmt.Sprintf("run %d, %s %s, %s", step.Run, step.Variant, step.Load.Model(), step.Load)
}
