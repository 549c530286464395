package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"flashsale/internal/app"
	"flashsale/internal/audit"
	"flashsale/internal/bench"
	"flashsale/internal/stock"
)

func (p *program) auditCommand() *cobra.Command {
	var o installation
	var wait time.Duration
	var deep, asJSON bool
	c := &cobra.Command{
		Use:   "audit SALE",
		Short: "Compare a sale's stock, Redis and SQL",
		Long: `Compare what a sale started with, what Redis sold and what SQL has.

Exit code 1: something is oversold, lost, gone, duplicated or, after --wait, not
settled; or Redis has lost the sale, even if it was loaded again.`,
		Args: arguments("SALE"),
		RunE: func(c *cobra.Command, args []string) error {
			cfg, err := o.config(p.getenv)
			if err != nil {
				return err
			}
			switch {
			case !stock.ValidID(args[0]):
				return usage("%q is no sale's ID: allowed are 1 to 64 of a-z 0-9 -, the first not -", args[0])
			case wait < 0 || wait > time.Hour:
				return usage("--wait: %v: allowed is 0s to 1h", wait)
			}
			return p.audit(c.Context(), cfg, args[0], audit.Options{Wait: wait, Deep: deep}, asJSON)
		},
	}
	o.addFlags(c.Flags())
	c.Flags().DurationVar(&wait, "wait", 0, "wait so long for what is in flight (alone: 30s)")
	c.Flags().Lookup("wait").NoOptDefVal = "30s"
	c.Flags().BoolVar(&deep, "deep", false, "compare purchase by purchase")
	c.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	return c
}

func (p *program) audit(ctx context.Context, cfg app.Config, saleID string, options audit.Options, asJSON bool) error {
	tools, err := app.OpenInstallation(cfg)
	if err != nil {
		return err
	}
	defer tools.Close()
	result, err := tools.Audit(ctx, saleID, options)
	if err != nil {
		return err
	}
	if asJSON {
		err = p.printJSON(result)
	} else {
		p.printAudit(result)
	}
	if err == nil && !result.Exact() {
		return faultsError{fmt.Sprintf("sale %s is not exact", saleID)}
	}
	return err
}

func (p *program) printAudit(a stock.Audit) {
	p.say("sale %s, variant %s", a.SaleID, a.Variant)
	for _, line := range []struct {
		name  string
		units int64
		about string
	}{
		{"initial", a.Initial, "units at the start"},
		{"remaining", a.Remaining, "left in Redis"},
		{"accepted", a.Accepted, "answered as sold"},
		{"cancelled", a.Cancelled, "given back"},
		{"persisted", a.Persisted, "sold in SQL"},
		{"rejected", a.Rejected, "accepted, refused by SQL"},
		{"in flight", a.InFlight, "accepted, not in SQL yet"},
		{"oversold", a.Oversold, "sold beyond the stock"},
		{"lost updates", a.LostUpdates, "sold, still in stock"},
		{"undersold", a.Undersold, "gone, sold to nobody"},
		{"duplicates", a.Duplicates, "in SQL, not accepted in Redis, or Redis has lost it"},
	} {
		p.say("  %-13s %13s  %s", line.name, bench.Thousands(line.units), line.about)
	}
	if d := a.Deep; d != nil {
		p.say("  purchase by purchase: %s on both sides, %d differ, %d missing in SQL, %d unknown to Redis",
			bench.Thousands(d.Compared), d.Differing.Count, d.MissingInLedger.Count, d.UnknownToRedis.Count)
	}
	switch {
	case a.RedisLost:
		p.say("Redis had lost this sale, and it was loaded again: what it sold before may be in no sum, so this is NOT exact")
	case a.Exact():
		p.say("settled and exact")
	case a.Settled:
		p.say("settled, NOT exact")
	default:
		p.say("NOT settled")
	}
}
