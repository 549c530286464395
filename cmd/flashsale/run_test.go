package main

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
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

func TestWrongCallsAreExplained(t *testing.T) {
	for _, test := range []struct {
		args string
		want string // in the message
	}{
		{"sell", `unknown command "sell": allowed are audit, demo, doctor, help, migrate, preload, up`},
		{"demo now", `unexpected argument "now"`},
		{"demo --speed 3", "unknown flag: --speed"},
		{"demo --variants setnx,foo", `--variants: unknown variant "foo": allowed are none, `},
		{"demo --variants setnx,setnx", `"setnx" is there twice`},
		{"demo --variants= ", `unknown variant ""`},
		{"demo --users 100 --stock 100", "100 users for 100 units is no race"},
		{"demo --users 0 --stock -1", "allowed is 1 to 20000"},
		{"demo --users many", `invalid argument "many" for "--users"`},
		{"demo --stock 0", "stock 0: allowed is 1 or more"},
		{"demo --duration 2", `invalid argument "2" for "--duration"`},
		{"demo --duration 1ms", "allowed is 10ms to 1h"},
		{"demo --seed -1", `invalid argument "-1" for "--seed"`},
		{"demo --redis nowhere", `--redis=`},
		{"demo --redis redis://h:1", `want host:port`},
		{"demo --kafka a:1,b", "--kafka="},
		{"demo --mysql root@tcp(h:1)/", "--mysql="},
		{"up --listen 8080", `--listen="8080"`},
		{"preload", "FILE.csv (or --from-db) is missing"},
		{"preload a.csv b.csv", `unexpected argument "b.csv"`},
		{"preload a.csv --from-db", `unexpected argument "a.csv"`},
		{"preload /does/not/exist.csv", "no such file"},
		{"preload .", "is a directory"},
		{"FLASHSALE_ETCD_ENDPOINTS=nowhere preload a.csv", "FLASHSALE_ETCD_ENDPOINTS="},
		{"FLASHSALE_REDIS_ADDRS=nowhere preload --from-db", "FLASHSALE_REDIS_ADDRS="},
		{"FLASHSALE_PREFIX=A_B migrate", "FLASHSALE_PREFIX="},
		{"migrate --prefix A_B", `--prefix="A_B"`},
		{"audit", "SALE is missing"},
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
			if s.stdout.String() != "" || strings.Contains(said.String(), "goroutine") || strings.Contains(said.String(), "Usage:") {
				t.Errorf("stdout %q, said %q", s.stdout.String(), said.String())
			}
		})
	}
}

func TestHelp(t *testing.T) {
	for _, args := range [][]string{nil, {"--help"}, {"help", "demo"}, {"demo", "--help"}} {
		s := call(t.Context(), args...)
		if s.err != nil || !strings.Contains(s.stdout.String(), "demo") || s.stderr.String() != "" {
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
