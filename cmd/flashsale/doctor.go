package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"flashsale/internal/app"
)

func (p *program) doctorCommand() *cobra.Command {
	var o installation
	var asJSON bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Say which servers can be reached, their versions, and what is missing on them",
		Args:  arguments(),
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := o.config(p.getenv)
			if err != nil {
				return err
			}
			return p.doctor(c.Context(), cfg, asJSON)
		},
	}
	o.addFlags(c.Flags())
	c.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	return c
}

// finding is what the doctor says about one server.
type finding struct {
	Version string `json:"version"`
	Problem string `json:"problem"` // empty: none
}

func (p *program) doctor(ctx context.Context, cfg app.Config, asJSON bool) error {
	tools, err := app.OpenInstallation(cfg)
	if err != nil {
		return err
	}
	defer tools.Close()
	findings := make(map[string]finding)
	var found []string
	for _, check := range []struct {
		name    string
		version func(context.Context) (string, error)
		ready   func(context.Context) error
	}{
		{"redis", tools.RedisVersion, nil},
		{"kafka", unknownVersion, tools.CheckTopics},
		{"sql", tools.SQLVersion, tools.CheckSchema},
	} {
		version, err := check.version(ctx)
		if err == nil && check.ready != nil {
			err = check.ready(ctx)
		}
		if err != nil && check.name == "kafka" {
			version = ""
		}
		f := finding{Version: version}
		switch {
		case err != nil:
			f.Problem = err.Error()
			found = append(found, fmt.Sprintf("%s: %v", check.name, err))
		case !asJSON:
			p.say("%-6s %s: good", check.name, version)
		}
		findings[check.name] = f
	}
	if asJSON {
		if err := p.printJSON(findings); err != nil {
			return err
		}
	}
	return faults(found)
}

// unknownVersion is what Kafka tells about itself.
func unknownVersion(context.Context) (string, error) { return "reachable", nil }
