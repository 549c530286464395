package main

import (
	"context"

	"github.com/spf13/cobra"

	"flashsale/internal/app"
)

func (p *program) migrateCommand() *cobra.Command {
	var o installation
	var asJSON bool
	c := &cobra.Command{
		Use:   "migrate",
		Short: "Make or upgrade the tables, and make the topics that are missing",
		Args:  arguments(),
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := o.config(p.getenv)
			if err != nil {
				return err
			}
			return p.migrate(c.Context(), cfg, asJSON)
		},
	}
	o.addFlags(c.Flags())
	c.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	return c
}

func (p *program) migrate(ctx context.Context, cfg app.Config, asJSON bool) error {
	tools, err := app.OpenInstallation(cfg)
	if err != nil {
		return err
	}
	defer tools.Close()
	if err := tools.MigrateSchema(ctx); err != nil {
		return err
	}
	if !asJSON {
		p.say("tables are up to date")
	}
	if err := tools.MigrateTopics(ctx); err != nil {
		return err
	}
	if asJSON {
		return p.printJSON(map[string]bool{"schema": true, "topics": true})
	}
	p.say("topics are there")
	return nil
}
