package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"flashsale/internal/bench"
)

type articleOptions struct {
	targetOptions
	json     bool
	duration time.Duration
	runs     int
	seed     uint64
}

func (p *program) articleCommand() *cobra.Command {
	var o articleOptions
	c := &cobra.Command{
		Use:   "article",
		Short: "Measure what the articles on Redis locks measured, and print theirs beside ours",
		Long: `Print the three rows that the articles on Redis locks report (no lock 1500 a
second and 12 % oversold, SETNX 800 and 0 %, Redisson-style lock with preloaded
stock 1200 and 0 %) beside the same variants measured here, at 1 and at 64
clients, with the ratios to no lock, and say where the difference comes from.

Where it measures, and its exit codes, are those of bench.`,
		Args: arguments(),
		RunE: func(c *cobra.Command, _ []string) error {
			switch err := bench.CheckClosed(1, o.duration); {
			case err != nil:
				return usage("--duration: %w", err)
			case o.runs < 1 || o.runs > maxRuns:
				return usage("--runs: %d: allowed is 1 to %d", o.runs, maxRuns)
			}
			if err := o.targetOptions.check(c.Flags(), p.getenv); err != nil {
				return err
			}
			return p.article(c.Context(), o)
		},
	}
	f := c.Flags()
	f.SortFlags = false
	f.DurationVar(&o.duration, "duration", 3*time.Second, "of each load")
	f.IntVar(&o.runs, "runs", 3, "how often everything is measured")
	f.Uint64Var(&o.seed, "seed", 0, "of user IDs and pauses; 0: at random")
	f.BoolVar(&o.json, "json", false, "print one JSON object, and nothing else on stdout")
	o.targetOptions.addFlags(f)
	return c
}

func (p *program) article(ctx context.Context, o articleOptions) error {
	m := measurement{program: p, targetOptions: o.targetOptions, json: o.json, seed: o.seed, title: "flashsale bench article"}
	report, screen, err := m.make(ctx, bench.ArticlePlan(o.runs, o.duration))
	if report == nil {
		return err
	}
	article := bench.NewArticle(report)
	if o.json {
		return errors.Join(err, p.printJSON(article))
	}
	screen.say("")
	return errors.Join(err, article.Write(screen.out))
}
