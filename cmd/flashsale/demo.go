package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"flashsale/internal/app"
	"flashsale/internal/bench"
)

// defaultVariants are shown unless others are asked for.
var defaultVariants = []string{"none", "setnx", "watchdog", "atomic"}

const closedUsers = 64

// demoOptions are the flags of the demo.
type demoOptions struct {
	stackOptions
	once, json bool
	variants   string
	users      int
	stock      int64
	duration   time.Duration
	seed       uint64
}

func (p *program) demoCommand() *cobra.Command {
	var o demoOptions
	c := &cobra.Command{
		Use:   "demo",
		Short: "Race every variant for the same stock, print what happened, then serve the catalogue",
		Long: `Race every variant for the same stock and measure it under load, print one table,
then serve the catalogue's sales until Ctrl-C.

Everything runs in this process: a stand-in for each server that is not given,
the API, the relay and the syncer. On a server that is given, the demo uses keys,
topics and sales of its own and removes them at the end.

Exit code 1: a safe variant oversold, lost or duplicated something or did not
settle, or no lock was asked for and did not oversell. Locks that are broken on
purpose promise nothing but that each accepted purchase settles.`,
		Args: arguments(),
		RunE: func(c *cobra.Command, _ []string) error {
			variants, err := o.check()
			if err != nil {
				return err
			}
			return p.demo(c.Context(), o, variants)
		},
	}
	f := c.Flags()
	o.addFlags(f)
	f.BoolVar(&o.once, "once", false, "end after the table")
	f.BoolVar(&o.json, "json", false, "print one JSON object instead of the table, and end (implies --once)")
	f.StringVar(&o.variants, "variants", strings.Join(defaultVariants, ","), "what to measure, separated by commas, or all: "+strings.Join(app.Variants(), ", "))
	f.IntVar(&o.users, "users", 300, "users of the race, more than --stock")
	f.Int64Var(&o.stock, "stock", 100, "units that they race for")
	f.DurationVar(&o.duration, "duration", 2*time.Second, "of the closed measurement")
	f.Uint64Var(&o.seed, "seed", 0, "of user IDs and pauses; 0: at random")
	return c
}

// check returns the variants to measure.
func (o demoOptions) check() ([]string, error) {
	if err := o.stackOptions.check(); err != nil {
		return nil, err
	}
	if err := bench.CheckRace(o.users, o.stock); err != nil {
		return nil, usage("--users, --stock: %w", err)
	}
	if err := bench.CheckClosed(closedUsers, o.duration); err != nil {
		return nil, usage("--duration: %w", err)
	}
	return parseVariants(o.variants)
}

// parseVariants reads --variants.
func parseVariants(text string) ([]string, error) {
	known := app.Variants()
	if text == "all" {
		return known, nil
	}
	var variants []string
	for name := range strings.SplitSeq(text, ",") {
		switch {
		case name == "all":
			return nil, usage("--variants: all has every variant, and is given alone")
		case !slices.Contains(known, name):
			return nil, usage("--variants: unknown variant %q: allowed are %s, or all", name, strings.Join(known, ", "))
		case slices.Contains(variants, name):
			return nil, usage("--variants: %q is there twice: allowed is each once", name)
		}
		variants = append(variants, name)
	}
	return variants, nil
}

// demo's result is nil, the faults that it found, or why it could not be held.
func (p *program) demo(ctx context.Context, o demoOptions, variants []string) (err error) {
	out := p.stdout
	if o.json {
		out = p.stderr // stdout is for the object alone
	}
	screen := newScreen(out, p.stderr)
	o.seed = cmp.Or(o.seed, rand.Uint64()>>1)
	screen.say("flashsale demo: %s, each with a race (%d users for %d units) and a closed load (%d users, %v); seed %d",
		strings.Join(variants, ", "), o.users, o.stock, closedUsers, o.duration, o.seed)

	s, err := startStack(ctx, o.stackOptions, p.stderr)
	if err != nil {
		return err
	}
	defer func() { err = s.closeAfter(err) }()
	s.describe(screen)

	rows, err := o.measure(ctx, s, variants, screen)
	if err != nil {
		return err
	}
	found := faults(allFaults(rows))
	if o.json {
		if err := p.printJSON(demoResult{Servers: s.serverResults(), Rows: rows}); err != nil {
			return err
		}
		return found
	}
	if err := printTable(screen, s, o, rows); err != nil {
		return err
	}
	if o.once {
		return found
	}
	if found != nil {
		screen.say("\nFaults:\n%v", found)
	}
	if err := s.serve(ctx, screen); err != nil {
		return err
	}
	return found
}

// measure makes both measurements of each variant.
func (o demoOptions) measure(ctx context.Context, s *stack, variants []string, screen *screen) ([]bench.Row, error) {
	b, err := bench.New(bench.Options{URL: s.url, AdminToken: s.adminToken, Seed: o.seed, Progress: screen.progress})
	if err != nil {
		return nil, err
	}
	defer screen.clear()
	var rows []bench.Row
	lacking := s.config.Lacking()
	for i, variant := range variants {
		if why := lacking[variant]; why != "" {
			rows = append(rows, bench.SkippedRow(variant, bench.ModelRace, why), bench.SkippedRow(variant, bench.ModelClosed, why))
			continue
		}
		screen.step(2*i+1, 2*len(variants))
		row, err := b.Race(ctx, bench.Race{Variant: variant, SaleID: s.saleID("race-" + variant), Users: o.users, Stock: o.stock})
		if err != nil {
			return nil, s.cause(err)
		}
		row.Broken = app.Broken(variant)
		screen.finished(row)
		rows = append(rows, row)

		screen.step(2*i+2, 2*len(variants))
		row, err = b.Closed(ctx, bench.Closed{Variant: variant, SaleID: s.saleID("closed-" + variant), Users: closedUsers, Duration: o.duration})
		if err != nil {
			return nil, s.cause(err)
		}
		row.Broken = app.Broken(variant)
		screen.finished(row)
		rows = append(rows, row)
	}
	return rows, nil
}

func allFaults(rows []bench.Row) (list []string) {
	for _, row := range rows {
		list = append(list, bench.Faults(row)...)
	}
	return list
}

func printTable(screen *screen, s *stack, o demoOptions, rows []bench.Row) error {
	screen.say("\nRace: %d users for %d units, one each. Closed: %d users for %v: speed, waiting. Lost updates and settled: both.%s\n",
		o.users, o.stock, closedUsers, o.duration, s.label())
	if err := bench.WriteTable(screen.out, rows); err != nil {
		return err
	}
	screen.say("")
	for _, line := range bench.Findings(rows) {
		screen.say("%s", line)
	}
	return nil
}

// demoResult is what --json prints. Its keys, and those of its rows, are read by
// scripts.
type demoResult struct {
	Servers map[string]serverResult `json:"servers"`
	Rows    []bench.Row             `json:"rows"`
}

type serverResult struct {
	Version string `json:"version"`
	Addr    string `json:"addr"`
	Real    bool   `json:"real"` // false: an embedded stand-in
}

func (p *program) printJSON(value any) error {
	encoder := json.NewEncoder(p.stdout)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}
