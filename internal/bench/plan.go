package bench

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Plan is a set of measurements: each variant under each load, so many times.
type Plan struct {
	Variants []string
	Loads    []Load
	Runs     int
	WarmUp   time.Duration // each variant sells so long before anything counts; 0: not at all

	Duration time.Duration // of a load
	Stock    int64         // of a load's sale; 0: more than can be sold
	Work     Work          // of every sale

	// Each variant races in each run, too; zero: not at all.
	RaceUsers int
	RaceStock int64

	// Of the open model.
	Arrivals Arrivals
	InFlight int
}

// Load is what a sale is put under: a number of users, or a rate of arrivals.
type Load struct {
	Users int     // closed model
	Rate  float64 // open model, when Users is 0
}

// Model is race for the zero Load.
func (l Load) Model() Model {
	switch {
	case l.Users > 0:
		return ModelClosed
	case l.Rate > 0:
		return ModelOpen
	default:
		return ModelRace
	}
}

// Step is one measurement of a plan.
type Step struct {
	N, Of   int // from 1
	Run     int // from 1; 0: the warm-up
	Variant string
	Load    Load // zero: the race
}

// Sample is what a step came to.
type Sample struct {
	Run  int     `json:"run"`
	Rate float64 `json:"rate_per_s"` // that was offered; 0 but in the open model
	Row
	Detail
}

func (s Sample) load() Load {
	if s.Model == ModelRace {
		return Load{}
	}
	return Load{Users: s.Users, Rate: s.Rate}
}

// steps are interleaved: each run goes through all variants, so that what
// changes on the machine meanwhile befalls them all. Every run begins with the
// next variant, so that none has the same neighbour's heat each time.
func (p Plan) steps() []Step {
	var steps []Step
	for run := range p.Runs {
		for i := range p.Variants {
			step := Step{Run: run + 1, Variant: p.Variants[(i+run)%len(p.Variants)]}
			if p.RaceUsers > 0 {
				steps = append(steps, step)
			}
			for _, step.Load = range p.Loads {
				steps = append(steps, step)
			}
		}
	}
	for i := range steps {
		steps[i].N, steps[i].Of = i+1, len(steps)
	}
	return steps
}

// Stage is what a plan needs of its surroundings.
type Stage struct {
	SaleID  func(name string) string // names a sale, as one that nobody else has
	Lacking map[string]string        // what isn't offered, and what it needs
	Broken  func(variant string) bool
	Begin   func(Step)
	Done    func(Step, Sample)
	Cause   func(error) error // why a measurement failed, when somebody knows better
}

// Run makes the measurements. Also when it returns an error, the samples are
// those that were completed. A variant that the API hasn't got is skipped.
func (b *Bench) Run(ctx context.Context, plan Plan, stage Stage) ([]Sample, error) {
	var samples []Sample
	lacking := map[string]string{}
	for variant, why := range stage.Lacking {
		lacking[variant] = why
	}
	if plan.WarmUp > 0 {
		if err := b.warmUp(ctx, plan, stage, lacking); err != nil {
			return nil, stage.Cause(err)
		}
	}
	for _, step := range plan.steps() {
		sample := Sample{Run: step.Run, Rate: step.Load.Rate}
		stage.Begin(step)
		if lacking[step.Variant] == "" {
			var err error
			sample.Row, err = b.step(ctx, plan, step, stage)
			if !skip(lacking, step.Variant, err) && err != nil {
				return samples, stage.Cause(err)
			}
		}
		if why := lacking[step.Variant]; why != "" {
			sample.Row = SkippedRow(step.Variant, step.Load.Model(), why)
			sample.Row.Users = step.Load.Users
		}
		sample.Row.Broken = stage.Broken(step.Variant)
		sample.Detail = sample.Row.Detail
		samples = append(samples, sample)
		stage.Done(step, sample)
	}
	return samples, nil
}

// skip reports whether err says that the API hasn't got the variant, and
// remembers it.
func skip(lacking map[string]string, variant string, err error) bool {
	refused, ok := errors.AsType[*refusal](err)
	if !ok || refused.lacking() == "" {
		return false
	}
	lacking[variant] = refused.lacking()
	return true
}

const warmUpUsers = 16

// warmUp has every variant sell for a while, so that the first run is none of
// cold caches and uncompiled code.
func (b *Bench) warmUp(ctx context.Context, plan Plan, stage Stage, lacking map[string]string) error {
	for _, variant := range plan.Variants {
		if lacking[variant] != "" {
			continue
		}
		stage.Begin(Step{N: 1, Of: len(plan.steps()), Variant: variant, Load: Load{Users: warmUpUsers}})
		_, err := b.Closed(ctx, Closed{Variant: variant, SaleID: stage.SaleID("bench-0-" + variant), Users: warmUpUsers, Duration: plan.WarmUp, Work: plan.Work})
		if !skip(lacking, variant, err) && err != nil {
			return err
		}
	}
	return nil
}

func (b *Bench) step(ctx context.Context, plan Plan, step Step, stage Stage) (Row, error) {
	id := stage.SaleID(fmt.Sprintf("bench-%d-%s", step.N, step.Variant))
	switch step.Load.Model() {
	case ModelRace:
		return b.Race(ctx, Race{Variant: step.Variant, SaleID: id, Users: plan.RaceUsers, Stock: plan.RaceStock, Work: plan.Work})
	case ModelClosed:
		return b.Closed(ctx, Closed{Variant: step.Variant, SaleID: id, Users: step.Load.Users, Duration: plan.Duration, Stock: plan.Stock, Work: plan.Work})
	default:
		return b.Open(ctx, Open{Variant: step.Variant, SaleID: id, Rate: step.Load.Rate, Arrivals: plan.Arrivals, InFlight: plan.InFlight,
			Duration: plan.Duration, Stock: plan.Stock, Work: plan.Work})
	}
}
