package app

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
)

// ErrHelp says that --help was asked for, and printed.
var ErrHelp = flag.ErrHelp

// ParseConfig reads a program's settings: a flag overrides its variable, a
// variable its default; an empty variable is none. Its error lists everything
// that is wrong, naming variable or flag, value and what is allowed. The
// warnings are FLASHSALE_ variables that mean nothing: most often slips.
func ParseConfig(p Program, args, environ []string, stdout io.Writer) (c Config, warnings []string, err error) {
	var wrong []error
	given, unknown := environment(environ)
	for _, s := range settings {
		value, from := given[s.env()], s.env()
		if value == "" {
			value, from = s.initial, s.env()+" (default)"
		}
		if value != "" && p.uses(s) && !hasFlag(args, s) {
			wrong = append(wrong, apply(&c, s, from, value))
		}
	}
	for _, name := range unknown {
		warnings = append(warnings, name+" is set, but there is no such setting; there are "+variables())
	}

	flags := flag.NewFlagSet(p.Name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	for _, s := range settings {
		if p.uses(s) {
			define := flags.Func
			if s.toggle {
				define = flags.BoolFunc
			}
			define(s.flag(), s.doc, func(value string) error {
				wrong = append(wrong, apply(&c, s, "--"+s.flag(), value))
				return nil
			})
		}
	}
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		printHelp(p, stdout)
		return Config{}, nil, ErrHelp
	case err != nil:
		wrong = append(wrong, fmt.Errorf("%w: there are %s", err, strings.Join(flagNames(p), ", ")))
	case flags.NArg() > 0:
		wrong = append(wrong, fmt.Errorf("%q is not expected: there are flags only", flags.Arg(0)))
	}
	if err := errors.Join(wrong...); err != nil {
		return c, warnings, wrongCall{err}
	}
	return c, warnings, nil
}

// wrongCall is what is wrong with flags and variables: the program did not run.
type wrongCall struct{ error }

func (w wrongCall) Unwrap() error { return w.error }

// Report says in one line why a program ended, and returns its exit code: 2 when
// it was called wrongly.
func Report(p Program, err error, stderr io.Writer) int {
	var wrong wrongCall
	switch {
	case err == nil:
		return 0
	case errors.As(err, &wrong):
		fmt.Fprintf(stderr, "%s: %s; %s -h lists all settings\n", p.Name, strings.ReplaceAll(err.Error(), "\n", "; "), p.Name)
		return 2
	default:
		fmt.Fprintf(stderr, "%s: %v\n", p.Name, err)
		return 1
	}
}

func flagNames(p Program) (names []string) {
	for _, s := range settings {
		if p.uses(s) {
			names = append(names, "--"+s.flag())
		}
	}
	return names
}

func apply(c *Config, s setting, from, value string) error {
	if s.set(c, value) {
		return nil
	}
	return fmt.Errorf("%s=%s is not allowed: want %s", from, s.redact(value), s.allowed)
}

// hasFlag reports whether a setting's flag is among args, so that a wrong
// variable which it overrides is no fault.
func hasFlag(args []string, s setting) bool {
	return slices.ContainsFunc(args, func(arg string) bool {
		name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		return strings.HasPrefix(arg, "-") && name == s.flag()
	})
}

// environment picks the FLASHSALE_ variables, and those among them that are no setting.
func environment(environ []string) (given map[string]string, unknown []string) {
	given = map[string]string{}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, envPrefix) {
			continue
		}
		if !slices.ContainsFunc(settings, func(s setting) bool { return s.env() == name }) {
			unknown = append(unknown, name)
		}
		given[name] = value
	}
	slices.Sort(unknown)
	return given, unknown
}

func variables() string {
	names := make([]string, len(settings))
	for i, s := range settings {
		names[i] = s.env()
	}
	return strings.Join(names, ", ")
}

func printHelp(p Program, w io.Writer) {
	fmt.Fprintf(w, "%s %s.\n\nUsage: %s [flags]\n\nEach setting is a variable of the environment or a flag; the flag wins.\n", p.Name, p.Summary, p.Name)
	for _, s := range settings {
		if !p.uses(s) {
			continue
		}
		initial := s.initial
		if initial == "" {
			initial = "none"
		}
		fmt.Fprintf(w, "\n  %s, --%s\n      %s\n      allowed: %s\n      default: %s\n", s.env(), s.flag(), s.doc, s.allowed, initial)
	}
	fmt.Fprintf(w, "\nFlags can be read by everybody on the machine: secrets belong into the environment.\n")
}
