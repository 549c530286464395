package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
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
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return usageError{wrongFlag(c, err)} })
	root.AddCommand(p.demoCommand(), p.upCommand(), p.benchCommand(), p.preloadCommand(), p.auditCommand(), p.migrateCommand(), p.doctorCommand())
	root.Args = func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return usage("unknown command %q: allowed are %s", args[0], commandsOf(root))
	}
	root.SetHelpCommand(helpCommand(root))
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) error { return refuseEmpty(c.Flags()) }
	root.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	return root
}

// helpCommand is cobra's, but that a command which doesn't exist is a wrong call.
func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about any command",
		RunE: func(_ *cobra.Command, args []string) error {
			found, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return usage("there is no command %q: allowed are %s", strings.Join(args, " "), commandsOf(root))
			}
			return found.Help()
		},
	}
}

func commandsOf(root *cobra.Command) string {
	var names []string
	for _, c := range root.Commands() {
		names = append(names, c.Name())
	}
	return strings.Join(names, ", ")
}

// refuseEmpty wants a value of each flag that is given. An empty one is a shell's
// variable that isn't set, and the default in its place would be something else
// than was asked for: a stand-in, say, in place of a server.
func refuseEmpty(f *pflag.FlagSet) (err error) {
	f.Visit(func(f *pflag.Flag) {
		if err == nil && f.Value.Type() == "string" && f.Value.String() == "" {
			err = usage("--%s=\"\" is not allowed: leave it out, or give it a value", f.Name)
		}
	})
	return err
}

// wrongFlag adds what is allowed to what the parser of flags says.
func wrongFlag(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown):
		var names []string
		c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
		return fmt.Errorf("%w: allowed are %s", err, strings.Join(names, ", "))
	case errors.As(err, &invalid):
		if allowed := allowedValues[invalid.GetFlag().Value.Type()]; allowed != "" {
			return fmt.Errorf("invalid argument %q for \"--%s\": allowed is %s", invalid.GetValue(), invalid.GetFlag().Name, allowed)
		}
	}
	return err
}

// allowedValues are by pflag's name of the type.
var allowedValues = map[string]string{
	"bool": "true or false", "int": "a whole number", "int64": "a whole number", "uint64": "a whole number, 0 or more",
	"duration": "a duration such as 500ms, 2s or 1m", "float64Slice": "a number, or several separated by commas",
}

// arguments wants exactly these, no more and no less.
func arguments(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) > len(names):
			allowed := "flags alone"
			if len(names) > 0 {
				allowed = strings.Join(names, " ") + " and flags"
			}
			for _, sub := range c.Commands() {
				allowed += ", or the command " + sub.Name()
			}
			return usage("%s: unexpected argument %q: allowed are %s", c.CommandPath(), args[len(names)], allowed)
		case len(args) < len(names):
			return usage("%s: %s is missing", c.CommandPath(), names[len(args)])
		default:
			return nil
		}
	}
}
