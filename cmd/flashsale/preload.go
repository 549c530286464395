package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"flashsale/internal/app"
	"flashsale/internal/catalogue"
	"flashsale/internal/stock"
)

func (p *program) preloadCommand() *cobra.Command {
	var o installation
	var fromDB, again, asJSON bool
	c := &cobra.Command{
		Use:   "preload FILE.csv | --from-db",
		Short: "Load a catalogue into SQL and Redis, or what stands in SQL into Redis",
		Long: `Load a catalogue of sales into SQL, then into Redis. The file is CSV in UTF-8 with
a header, its columns in any order:

  item_id, title, price (such as 19.90), stock, per_user_limit, variant,
  starts_at, ends_at (RFC 3339 with zone, or empty), sale_id (may be left out:
  the item's)

Nothing is loaded unless every line is good. A variant is good when the API offers
it under the same settings: those of FLASHSALE_REDLOCK_ADDRS,
FLASHSALE_ETCD_ENDPOINTS, FLASHSALE_ZOOKEEPER_ADDRS and
FLASHSALE_ALLOW_BROKEN_LOCKS. With --from-db the sales are those that stand in
SQL; one that the API would not offer is named and left out. Loading again what is
loaded changes nothing.

A sale that was loaded before and that Redis has lost is refused: it may have sold
units that never reached SQL, and they would be sold again. Who knows that it has
sold nothing says --again; a sale that has purchases in SQL is refused even so. The
audit of a sale that was loaded again never calls it exact.

Exit code 1: a line is wrong, or the sales could not be loaded. 2: the call is
wrong, or there is no such file, or it can't be read.`,
		Args: func(c *cobra.Command, args []string) error {
			if fromDB {
				return arguments()(c, args)
			}
			return arguments("FILE.csv (or --from-db)")(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			cfg, err := o.config(p.getenv, offer...)
			if err != nil {
				return err
			}
			var sales []stock.Sale
			if !fromDB {
				if sales, err = readCatalogue(args[0], cfg); err != nil {
					return err
				}
			}
			return p.preload(c.Context(), cfg, sales, fromDB, again, asJSON)
		},
	}
	o.addFlags(c.Flags())
	c.Flags().BoolVar(&fromDB, "from-db", false, "load what stands in SQL into Redis")
	c.Flags().BoolVar(&again, "again", false, "load what Redis has lost too, if SQL has no purchase of it")
	c.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	return c
}

// readCatalogue takes only sales that an API with these settings can sell.
func readCatalogue(name string, cfg app.Config) ([]stock.Sale, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, usageError{err}
	}
	defer file.Close()
	sales, err := catalogue.Parse(file, cfg.Offered(), cfg.Lacking())
	var unreadable *fs.PathError // a folder, say
	switch {
	case errors.As(err, &unreadable):
		return nil, usageError{err}
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return sales, nil
}

func (p *program) preload(ctx context.Context, cfg app.Config, sales []stock.Sale, fromDB, again, asJSON bool) error {
	tools, err := app.OpenInstallation(cfg)
	if err != nil {
		return err
	}
	defer tools.Close()
	var done app.Preloaded
	if fromDB {
		done, err = tools.PreloadFromLedger(ctx, again)
	} else {
		done, err = tools.Preload(ctx, sales, again)
	}
	if asJSON {
		if printErr := p.printJSON(done); printErr != nil {
			return printErr
		}
		return err
	}
	for _, part := range []struct {
		what string
		ids  []string
	}{{"loaded", done.Loaded}, {"there already", done.There}, {"closed, not loaded", done.Closed}} {
		if len(part.ids) > 0 {
			p.say("%d %s: %s", len(part.ids), part.what, strings.Join(part.ids, ", "))
		}
	}
	if err == nil && len(done.Loaded)+len(done.There)+len(done.Closed) == 0 {
		p.say("no sale to load")
	}
	return err
}
