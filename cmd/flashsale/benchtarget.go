package main

import (
	"context"
	"crypto/rand"
	"net/url"
	"regexp"
	"strings"

	"github.com/spf13/pflag"

	"flashsale/internal/bench"
)

// targetOptions say what is measured: a stack in this process, or a running API.
type targetOptions struct {
	stackOptions
	url, token string
}

func (o *targetOptions) addFlags(f *pflag.FlagSet) {
	f.StringVar(&o.url, "url", "", "a running API to measure, such as http://127.0.0.1:8080; its sales stay there, closed, under names of their own")
	f.StringVar(&o.token, "admin-token", "", "of that API (default: FLASHSALE_ADMIN_TOKEN)")
	o.stackOptions.addFlags(f)
}

// check fills in the token.
func (o *targetOptions) check(f *pflag.FlagSet, getenv func(string) string) error {
	if o.url == "" {
		if f.Changed("admin-token") {
			return usage("--admin-token: only with --url")
		}
		return o.stackOptions.check()
	}
	for _, name := range []string{"redis", "kafka", "mysql", "redlock", "etcd", "zookeeper", "listen"} {
		if f.Changed(name) {
			return usage("--%s: not with --url: that API has servers of its own", name)
		}
	}
	u, err := url.Parse(o.url)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return usage("--url: %q is no address: allowed is http://host:port or https://host:port", o.url)
	}
	if o.token == "" {
		o.token = getenv("FLASHSALE_ADMIN_TOKEN")
	}
	if o.token == "" {
		return usage("--admin-token (or FLASHSALE_ADMIN_TOKEN) is missing: with --url it is needed to create the sales that are measured")
	}
	return nil
}

// target is what is measured.
type target struct {
	url, token string
	inProcess  bool
	servers    map[string]bench.Server // nil: unknown
	remark     string                  // on the servers
	lacking    map[string]string
	saleID     func(name string) string
	cause      func(error) error
	closeAfter func(error) error
}

func (o targetOptions) open(ctx context.Context, p *program, s *screen) (*target, error) {
	if o.url != "" {
		prefix := "bench-" + strings.ToLower(rand.Text())[:8] + "-"
		s.say("api    %s; sales are named %s... and stay there, closed", o.url, prefix)
		return &target{
			url: strings.TrimRight(o.url, "/"), token: o.token,
			saleID:     func(name string) string { return prefix + strings.TrimPrefix(name, "bench-") },
			cause:      func(err error) error { return err },
			closeAfter: func(err error) error { return err },
		}, nil
	}
	stack, err := startStack(ctx, o.stackOptions, p.stderr)
	if err != nil {
		return nil, err
	}
	stack.describe(s)
	t := &target{
		url: stack.url, token: stack.adminToken, inProcess: true, servers: map[string]bench.Server{}, remark: stack.remark(),
		lacking: stack.config.Lacking(), saleID: stack.saleID, cause: stack.cause, closeAfter: stack.closeAfter,
	}
	for name, server := range stack.serverResults() {
		t.servers[name] = bench.Server(server)
	}
	return t, nil
}

// commandLine is how the program was called, ready for a shell, with dots in
// place of secrets.
func commandLine(args []string) string {
	words := []string{"flashsale"}
	for i, arg := range args {
		switch {
		case i > 0 && args[i-1] == "--admin-token":
			arg = "..."
		case strings.HasPrefix(arg, "--admin-token="):
			arg = "--admin-token=..."
		default:
			arg = dsnPassword.ReplaceAllString(arg, ":...@$1(")
			arg = urlPassword.ReplaceAllString(arg, ":...@")
		}
		words = append(words, quote(arg))
	}
	return strings.Join(words, " ")
}

var (
	dsnPassword = regexp.MustCompile(`:.*@(\w+)\(`) // anything up to the last @
	urlPassword = regexp.MustCompile(`:[^@/,]+@`)
	plainWord   = regexp.MustCompile(`^[A-Za-z0-9_./:=,@%+-]+$`)
)

func quote(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
