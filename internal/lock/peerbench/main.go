// Peerbench measures this module's locks beside other Go locks on Redis: bsm's
// redislock, redsync and rueidislock, on one redis-server of its own, in one run
// whose rounds alternate between them. It is a module of its own, so that
// flashsale doesn't depend on its peers.
//
// What is measured is a cycle: ask, hold, release, with nothing to do while
// holding but a look at whether anybody else does. A wait is the time from asking
// to holding. Each measurement has processes of its own, for a fixed time.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if task := os.Getenv(envTask); task != "" {
		os.Exit(contender(ctx, task, os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// The bounds that flags may not lift.
const (
	maxWindow = 30 * time.Second
	maxRounds = 9
)

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var (
		flags  = flag.NewFlagSet("peerbench", flag.ContinueOnError)
		asJSON = flags.Bool("json", false, "print one JSON object instead of a table")
		only   = flags.String("only", "", "measure this scene alone: contended, three_process or own_key; a table only")
		window = flags.Duration("window", time.Second, "how long one measurement lasts")
		rounds = flags.Int("rounds", 3, "how often each is measured; the median counts")
	)
	wrong := func(format string, values ...any) int {
		fmt.Fprintf(stderr, "peerbench: "+format+"; peerbench -h says more\n", values...)
		return 2
	}
	flags.SetOutput(io.Discard) // a wrong flag is no reason for a page of help
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(stdout, "peerbench measures locks beside one another, on a redis-server of its own.")
		flags.SetOutput(stdout)
		flags.PrintDefaults()
		return 0
	case err != nil:
		return wrong("%v: allowed are -json, -only, -window, -rounds", err)
	case flags.NArg() > 0:
		return wrong("unexpected argument %q: allowed are -json, -only, -window, -rounds", flags.Arg(0))
	case *window <= 0 || *window > maxWindow:
		return wrong("-window is %v: allowed is above 0, up to %v", *window, maxWindow)
	case *rounds < 1 || *rounds > maxRounds:
		return wrong("-rounds is %d: allowed is 1 to %d", *rounds, maxRounds)
	case *only != "" && !slices.ContainsFunc(scenes, func(s scene) bool { return s.name == *only }):
		return wrong("-only is %q: allowed are contended, three_process, own_key", *only)
	case *only != "" && *asJSON:
		return wrong("-only is not allowed with -json: there are no ratios of the others")
	}
	if *only != "" {
		scenes = slices.DeleteFunc(scenes, func(s scene) bool { return s.name != *only })
	}
	result, err := measureAll(ctx, *window, *rounds, stderr)
	if err != nil {
		fmt.Fprintln(stderr, "\npeerbench:", err) // after the progress
		return 1
	}
	if *asJSON {
		err = result.writeJSON(stdout)
	} else {
		err = result.writeTable(stdout)
	}
	if err != nil {
		fmt.Fprintln(stderr, "peerbench:", err)
		return 1
	}
	return 0
}

// scene is a way to contend.
type scene struct {
	name, title string
	processes   int
	contenders  int  // over all processes
	ownKeys     bool // a key for each contender
}

const ownKey = "own_key"

var scenes = []scene{
	{name: "contended", title: "64 contenders for one key, one process", processes: 1, contenders: 64},
	{name: "three_process", title: "64 contenders for one key, three processes", processes: 3, contenders: 64},
	{name: ownKey, title: "64 keys, one contender each, one process", processes: 1, contenders: 64, ownKeys: true},
}

// measureAll measures every lock in every scene. In each round each lock has its
// turn, and each round begins with another one, so that what the machine does
// meanwhile hits all of them.
func measureAll(ctx context.Context, window time.Duration, rounds int, progress io.Writer) (*result, error) {
	server, err := startRedis(ctx)
	if err != nil {
		return nil, err
	}
	defer server.stop()

	r := &result{Redis: server.version, Go: runtime.Version(), CPUs: runtime.NumCPU(), Window: window, Rounds: rounds}
	for _, s := range scenes {
		measured := make([][]measurement, len(locks))
		for round := range rounds {
			for i := range locks {
				i = (i + round*len(locks)/rounds) % len(locks)
				fmt.Fprintf(progress, "\r%-40s round %d of %d: %-12s", s.title, round+1, rounds, locks[i].name)
				m, err := measure(ctx, server.addr, s, locks[i], window)
				if err != nil {
					return nil, fmt.Errorf("%s, round %d, %s: %w", s.name, round+1, locks[i].name, err)
				}
				measured[i] = append(measured[i], m)
			}
		}
		for i, l := range locks {
			r.Figures = append(r.Figures, summarize(s, l, measured[i]))
		}
	}
	fmt.Fprintf(progress, "\r%79s\r", "")
	return r, nil
}
