package main

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// session is one call of the program.
type session struct {
	stdout, stderr output
	err            error
}

// output can be read while the program writes it.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// call runs the program in an empty environment, with NAME=value among args set
// first.
func call(ctx context.Context, args ...string) *session {
	environment := make(map[string]string)
	for len(args) > 0 && strings.HasPrefix(args[0], "FLASHSALE_") {
		name, value, _ := strings.Cut(args[0], "=")
		environment[name] = value
		args = args[1:]
	}
	s := new(session)
	s.err = run(ctx, args, func(name string) string { return environment[name] }, &s.stdout, &s.stderr)
	return s
}

// interrupted runs the program until the race of atomic is over and the load
// after it, which should be endless, has begun; then it presses Ctrl-C.
func interrupted(t *testing.T, args ...string) *session {
	t.Helper()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	s, ended := new(session), make(chan error, 1)
	go func() { ended <- run(ctx, args, func(string) string { return "" }, &s.stdout, &s.stderr) }()
	for !strings.Contains(s.stderr.String(), "atomic race") {
		select {
		case err := <-ended:
			t.Fatalf("ended: %v\n%s", err, s.stderr.String())
		case <-time.After(10 * time.Millisecond):
		}
	}
	interrupt()
	select {
	case s.err = <-ended:
	case <-time.After(15 * time.Second):
		t.Fatal("still running")
	}
	return s
}

func TestWrongCallsAreExplained(t *testing.T) {
	for _, test := range []struct {
		args string
		want string // in the message
	}{
		{"sell", `unknown command "sell": allowed are audit, bench, demo, doctor, help, migrate, preload, up`},
		{"demo now", `demo: unexpected argument "now": allowed are flags alone`},
		{"demo --speed 3", "unknown flag: --speed"},
		{"demo --variants setnx,foo", `--variants: unknown variant "foo": allowed are none, `},
		{"demo --variants setnx,setnx", `"setnx" is there twice: allowed is each once`},
		{"demo --variants= ", `--variants="" is not allowed`},
		{"demo --variants setnx,all", "--variants: all has every variant, and is given alone"},
		{"demo --users 100 --stock 100", "100 users for 100 units is no race"},
		{"demo --users 0 --stock -1", "allowed is 1 to 20000"},
		{"demo --users many", `invalid argument "many" for "--users": allowed is a whole number`},
		{"demo --stock 0", "stock 0: allowed is 1 or more"},
		{"demo --duration 2", `invalid argument "2" for "--duration": allowed is a duration such as 500ms, 2s or 1m`},
		{"demo --duration 1ms", "allowed is 10ms to 1h"},
		{"demo --seed -1", `invalid argument "-1" for "--seed": allowed is a whole number, 0 or more`},
		{"demo --stock many", `invalid argument "many" for "--stock": allowed is a whole number`},
		{"demo --once=perhaps", `invalid argument "perhaps" for "--once": allowed is true or false`},
		{"demo --users", "flag needs an argument: --users"},
		{"demo --redis nowhere", `--redis=`},
		{"bench now", `bench: unexpected argument "now": allowed are flags alone, or the command article`},
		{"bench --variants foo", `--variants: unknown variant "foo": allowed are none, `},
		{"bench --model race", `--model: unknown model "race": allowed are closed, open`},
		{"bench --users 0", "--users, --duration: bench: 0 users: allowed is 1 to 20000"},
		{"bench --duration 1ms", "allowed is 10ms to 1h"},
		{"bench --runs 0", "--runs: 0: allowed is 1 to 100"},
		{"bench --warm-up 1ms", "--warm-up: 1ms: allowed is 0, or 10ms to 1h0m0s"},
		{"bench --stock -1", "--stock: -1: allowed is 0 to 1000000000"},
		{"bench --race-users 10 --race-stock 10", "10 users for 10 units is no race"},
		{"bench --race-users 0 --race-stock 10", "--race-stock: not with --race-users 0"},
		{"bench --rate 10", "--rate: only with --model open"},
		{"bench --in-flight 10", "--in-flight: only with --model open"},
		{"bench --model open", "--rate is missing"},
		{"bench --model open --rate 10 --users 3", "--users: only with --model closed"},
		{"bench --model open --rate 0", "rate 0: allowed is more than 0 to 100000"},
		{"bench --model open --rate NaN", "rate NaN: allowed is more than 0"},
		{"bench --model open --rate ten", `invalid argument "ten" for "--rate": allowed is a number, or several separated by commas`},
		{"bench --model open --rate 10,10", "--rate: 10 is there twice"},
		{"bench --model open --rate 10 --arrivals uniform", `arrivals "uniform": allowed are poisson, constant`},
		{"bench --model open --rate 10 --in-flight 0", "0 in flight: allowed is 1 to 20000"},
		{"bench --work 20ms-5ms", `--work: "20ms-5ms": allowed is MIN-MAX, such as 50ms-200ms`},
		{"bench --work 1us-1ms", "--work: "},
		{"bench --work 5-x", "--work: "},
		{"bench --work 1s-11s", "from 0ms to 10s"},
		{"bench --url localhost:8080", `--url: "localhost:8080" is no address: allowed is http://host:port`},
		{"bench --url=", `--url="" is not allowed: leave it out, or give it a value`},
		{"bench --out=", `--out="" is not allowed`},
		{"demo --mysql=", `--mysql="" is not allowed`},
		{"bench --url http://h:1", "--admin-token (or FLASHSALE_ADMIN_TOKEN) is missing"},
		{"bench --admin-token x", "--admin-token: only with --url"},
		{"FLASHSALE_ADMIN_TOKEN=x bench --url http://h:1 --redis h:2", "--redis: not with --url"},
		{"FLASHSALE_ADMIN_TOKEN=x bench article --url http://h:1 --listen h:2", "--listen: not with --url"},
		{"bench --redis nowhere", `--redis=`},
		{"bench --out /dev/null", `--out: "/dev/null" is no folder`},
		{"bench article --runs 101", "--runs: 101: allowed is 1 to 100"},
		{"bench article --duration 1ns", "--duration: bench: duration 1ns: allowed is 10ms to 1h"},
		{"bench article two", `unexpected argument "two"`},
		{"demo --redis redis://h:1", `want host:port`},
		{"demo --kafka a:1,b", "--kafka="},
		{"demo --mysql root@tcp(h:1)/", "--mysql="},
		{"up --listen 8080", `--listen="8080"`},
		{"up --listen 127.0.0.1:65536", `--listen="127.0.0.1:65536" is not allowed: want host:port`},
		{"help sell", `there is no command "sell": allowed are audit, bench, demo, doctor, help, migrate, preload, up`},
		{"help bench articel", `there is no command "bench articel"`},
		{"preload", "FILE.csv (or --from-db) is missing"},
		{"preload a.csv b.csv", `preload: unexpected argument "b.csv": allowed are FILE.csv (or --from-db) and flags`},
		{"preload a.csv --from-db", `unexpected argument "a.csv"`},
		{"preload /does/not/exist.csv", "no such file"},
		{"preload .", "is a directory"},
		{"FLASHSALE_ETCD_ENDPOINTS=nowhere preload a.csv", "FLASHSALE_ETCD_ENDPOINTS="},
		{"FLASHSALE_REDIS_ADDRS=nowhere preload --from-db", "FLASHSALE_REDIS_ADDRS="},
		{"FLASHSALE_PREFIX=A_B migrate", "FLASHSALE_PREFIX="},
		{"migrate --prefix A_B", `--prefix="A_B"`},
		{"audit", "audit: SALE is missing"},
		{"audit lamp mug", `unexpected argument "mug": allowed are SALE and flags`},
		{"audit Lamp", `"Lamp" is no sale's ID`},
		{"audit lamp --wait=-1s", "allowed is 0s to 1h"},
	} {
		t.Run(test.args, func(t *testing.T) {
			s := call(t.Context(), strings.Fields(test.args)...)
			if s.err == nil || !strings.Contains(s.err.Error(), test.want) {
				t.Fatalf("error %v, want %q", s.err, test.want)
			}
			var said bytes.Buffer
			if code := report(s.err, &said); code != exitUsage {
				t.Errorf("exit code %d", code)
			}
			if strings.Count(said.String(), "\n") != 1 || !strings.Contains(said.String(), " -h says more\n") {
				t.Errorf("said %q: want one line with a hint", said.String())
			}
			if s.stdout.String() != "" || strings.Contains(said.String(), "goroutine") || strings.Contains(said.String(), "Usage:") {
				t.Errorf("stdout %q, said %q", s.stdout.String(), said.String())
			}
		})
	}
}

// Every command there is, so that a new one isn't forgotten.
func TestWrongFlagsOfEveryCommand(t *testing.T) {
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		path := strings.Fields(c.CommandPath())[1:]
		s := call(t.Context(), append(path, "--no-such-flag")...)
		var said bytes.Buffer
		code := report(s.err, &said)
		if want := "unknown flag: --no-such-flag: allowed are --"; code != exitUsage || !strings.Contains(said.String(), want) || !strings.HasSuffix(said.String(), "; "+c.CommandPath()+" -h says more\n") {
			t.Errorf("%s: exit code %d, said %q", c.CommandPath(), code, &said)
		}
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	visit(new(program).root())
}

func TestHelp(t *testing.T) {
	for _, args := range [][]string{nil, {"--help"}, {"help", "demo"}, {"demo", "--help"}, {"bench", "--help"}, {"bench", "article", "--help"}} {
		s := call(t.Context(), args...)
		if s.err != nil || !strings.Contains(s.stdout.String(), "Usage:") || s.stderr.String() != "" {
			t.Errorf("%v: %v\n%s%s", args, s.err, s.stdout.String(), s.stderr.String())
		}
	}
}

func TestExitCodes(t *testing.T) {
	for _, test := range []struct {
		err  error
		code int
		said string
	}{
		{nil, 0, ""},
		{faultsError{"none, race: did not oversell", "setnx, race: oversold"}, 1, "flashsale: none, race: did not oversell\nsetnx, race: oversold\n"},
		{context.DeadlineExceeded, 1, "flashsale: context deadline exceeded\n"},
		{usage("--x: %d", 3), 2, "flashsale: --x: 3\n"},
		{context.Canceled, 130, "flashsale: interrupted\n"},
	} {
		var said bytes.Buffer
		if code := report(test.err, &said); code != test.code || said.String() != test.said {
			t.Errorf("%v: exit %d, %q", test.err, code, said.String())
		}
	}
}
