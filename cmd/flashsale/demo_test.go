package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"flashsale/internal/app"
	"flashsale/internal/bench"
)

// small is a demo that ends within seconds.
func small(args ...string) []string {
	return append([]string{"demo", "--listen", "127.0.0.1:0", "--users", "40", "--stock", "10", "--duration", "150ms", "--seed", "1"}, args...)
}

func TestDemoOnStandIns(t *testing.T) {
	s := call(t.Context(), small("--once", "--variants", "all")...)
	if s.err != nil {
		t.Fatalf("%v\n%s%s", s.err, s.stdout.String(), s.stderr.String())
	}
	out := s.stdout.String()
	lacking := app.Config{MySQLDSN: "sqlite:", RedisStandIn: true, AllowBrokenLocks: true, RedlockAddrs: []string{"a", "b", "c"}}.Lacking()
	for _, variant := range app.Variants() {
		line := lineOf(out, variant+" ")
		if line == "" {
			t.Errorf("no line for %s", variant)
		}
		if why, skipped := lacking[variant]; skipped {
			if !strings.HasSuffix(line, "  skipped: "+why) {
				t.Errorf("%s isn't said to be skipped: %s", variant, line)
			}
			continue
		}
		if variant != bench.NoLock && !regexp.MustCompile(` 10  10 +0 +0 +0 +10 +0 +yes$`).MatchString(line) {
			t.Errorf("%s is not exact: %s", variant, line)
		}
	}
	for _, want := range []string{"stand-in within this process", "Figures of stand-ins for redis (miniredis", "No lock: ", "Speed: ", "seed 1", "setnx-bare, setnx-expire and setnx-getdel: broken on purpose, "} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	if progress := s.stderr.String(); strings.Count(progress, "\n") != 2*(len(app.Variants())-len(lacking)) || strings.ContainsAny(progress, "\r\x1b") {
		t.Errorf("progress:\n%s", progress)
	}
}

func lineOf(text, prefix string) string {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, prefix) && (!strings.Contains(line, ":") || strings.Contains(line, "  skipped: ")) {
			return strings.TrimSuffix(line, "\n")
		}
	}
	return ""
}

func TestDemoJSONIsOneObjectAndNothingElse(t *testing.T) {
	s := call(t.Context(), small("--json", "--variants", "atomic,none")...)
	if s.err != nil {
		t.Fatalf("%v\n%s", s.err, s.stderr.String())
	}
	var result map[string]json.RawMessage
	decoder := json.NewDecoder(strings.NewReader(s.stdout.String()))
	if err := decoder.Decode(&result); err != nil {
		t.Fatal(err)
	}
	if decoder.More() || len(result) != 2 {
		t.Errorf("more than servers and rows: %s", s.stdout.String())
	}
	var named map[string]map[string]any
	if err := json.Unmarshal(result["servers"], &named); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"redis", "kafka", "sql"} {
		if server := named[name]; server["version"] == "" || server["real"] != false {
			t.Errorf("server %s: %v", name, server)
		}
	}
	var rows []map[string]any
	if err := json.Unmarshal(result["rows"], &rows); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, row := range rows {
		got = append(got, row["variant"].(string)+" "+row["model"].(string))
		if len(row) != 27 || row["skipped"] != nil || row["lock_wait_p99_ms"] != nil || row["settled"] != true {
			t.Errorf("row %v", row)
		}
	}
	if want := []string{"atomic race", "atomic closed", "none race", "none closed"}; !slices.Equal(got, want) {
		t.Errorf("rows %v", got)
	}
}

// serving starts a demo that goes on serving, and returns once it does.
func serving(t *testing.T, args ...string) (s *session, stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	s = new(session)
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, args, func(string) string { return "" }, &s.stdout, &s.stderr) }()
	stop = func() error { cancel(); return <-ended }
	deadline := time.After(60 * time.Second)
	for !strings.Contains(s.stdout.String(), "/close") {
		select {
		case err := <-ended:
			t.Fatalf("ended: %v\n%s%s", err, s.stdout.String(), s.stderr.String())
		case <-deadline:
			t.Fatalf("doesn't serve: %v\n%s%s", stop(), s.stdout.String(), s.stderr.String())
		case <-time.After(20 * time.Millisecond):
		}
	}
	return s, stop
}

// Two that start at once must not be told the same port.
func TestAddressIsHeldFromTheStart(t *testing.T) {
	first, _, err := listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	second, remark, err := listen(first.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if second.Addr().String() == first.Addr().String() || !strings.Contains(remark, first.Addr().String()+" is busy") {
		t.Errorf("second at %v, %q", second.Addr(), remark)
	}
}

func TestPrintedCurlLinesWork(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("needs curl")
	}
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	s, stop := serving(t, "up", "--listen", busy.Addr().String())
	if !strings.Contains(s.stdout.String(), "("+busy.Addr().String()+" is busy)") {
		t.Errorf("nothing is said about the busy port:\n%s", s.stdout.String())
	}
	var answers []string
	for scanner := bufio.NewScanner(strings.NewReader(s.stdout.String())); scanner.Scan(); {
		if !strings.HasPrefix(scanner.Text(), "curl ") {
			continue
		}
		for range 2 { // each may be pasted twice
			var stderr bytes.Buffer
			curl := exec.Command("sh", "-c", scanner.Text()+" --fail-with-body")
			curl.Stderr = &stderr
			answer, err := curl.Output()
			right := json.Valid(answer)
			if strings.HasSuffix(scanner.Text(), "/metrics") {
				right = bytes.Contains(answer, []byte("\nflashsale_"))
			}
			if err != nil || !right {
				t.Errorf("%s: %v: %s %s", scanner.Text(), err, answer, stderr.String())
			}
			answers = append(answers, string(answer))
		}
	}
	if len(answers) != 14 || answers[2] != answers[3] {
		t.Errorf("answers: %q", answers)
	}
	if all := strings.Join(answers, "\n"); !strings.Contains(all, `"settled":true`) || !strings.Contains(all, `"closed"`) ||
		!strings.Contains(all, `flashsale_purchases_total{`) || !strings.Contains(all, "\nflashsale_syncer_") {
		t.Errorf("answers: %s", all)
	}
	if err := stop(); err != nil {
		t.Errorf("after Ctrl-C: %v", err)
	}
}

func TestInterruptedDemoEndsPromptly(t *testing.T) {
	s := interrupted(t, "demo", "--listen", "127.0.0.1:0", "--duration", "1h", "--variants", "atomic")
	if !errors.Is(s.err, context.Canceled) {
		t.Errorf("error %v", s.err)
	}
}
