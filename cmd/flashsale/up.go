package main

import (
	"context"

	"github.com/spf13/cobra"
)

func (p *program) upCommand() *cobra.Command {
	var o stackOptions
	c := &cobra.Command{
		Use:   "up",
		Short: "Serve the catalogue on the same stack as the demo, without measuring",
		Args:  arguments(),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return p.up(c.Context(), o)
		},
	}
	o.addFlags(c.Flags())
	return c
}

func (p *program) up(ctx context.Context, o stackOptions) (err error) {
	screen := newScreen(p.stdout, p.stderr)
	screen.say("flashsale up")
	s, err := startStack(ctx, o, p.stderr)
	if err != nil {
		return err
	}
	defer func() { err = s.closeAfter(err) }()
	s.describe(screen)
	return s.serve(ctx, screen)
}
