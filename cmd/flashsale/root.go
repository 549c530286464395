package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// program is what every command needs of its surroundings.
type program struct {
	args           []string // for the report that says how it was made
	getenv         func(string) string
	stdout, stderr io.Writer
}

func (p *program) say(format string, values ...any) {
	fmt.Fprintf(p.stdout, format+"\n", values...)
}

func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "flashsale",
		Short:         "Sell a limited stock to everybody at once, exactly once each",
		SilenceUsage:  true, // a wrong flag is answered with what is allowed, not with a page of help
		SilenceErrors: true,
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(p.demoCommand(), p.upCommand(), p.benchCommand(), p.preloadCommand(), p.auditCommand(), p.migrateCommand(), p.doctorCommand())
	root.Args = func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		var names []string
		for _, c := range root.Commands() {
			names = append(names, c.Name())
		}
		return usage("unknown command %q: allowed are %s", args[0], strings.Join(names, ", "))
	}
	root.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	return root
}

// arguments wants exactly these, no more and no less.
func arguments(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) > len(names):
			return usage("%s: unexpected argument %q", c.CommandPath(), args[len(names)])
		case len(args) < len(names):
			return usage("%s: %s is missing", c.CommandPath(), names[len(args)])
		default:
			return nil
		}
	}
}
