package main

import (
	"context"
	"fmt"
	"strings"

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
	schema, err := tools.MigrateSchema(ctx)
	if err != nil {
		return err
	}
	if !asJSON {
		p.say("%s", schemaDone(schema))
	}
	created, err := tools.MigrateTopics(ctx)
	if err != nil {
		return err
	}
	if asJSON {
		return p.printJSON(migrated{true, true, schema.From, schema.To, append([]string{}, created...)})
	}
	p.say("%s", topicsDone(created))
	return nil
}

// migrated is what --json prints.
type migrated struct {
	Schema  bool     `json:"schema"`      // it is this program's now
	Topics  bool     `json:"topics"`      // they are there now
	From    int64    `json:"schema_from"` // version before; 0: there was none
	To      int64    `json:"schema_to"`
	Created []string `json:"topics_created"`
}

func schemaDone(c app.SchemaChange) string {
	switch c.From {
	case c.To:
		return fmt.Sprintf("tables were up to date, version %d", c.To)
	case 0:
		return fmt.Sprintf("tables created, version %d", c.To)
	default:
		return fmt.Sprintf("tables upgraded from version %d to %d", c.From, c.To)
	}
}

func topicsDone(created []string) string {
	if len(created) == 0 {
		return "topics were there"
	}
	return "topics created: " + strings.Join(created, ", ")
}
