package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestMain lets the test binary be the contending processes too.
func TestMain(m *testing.M) {
	if task := os.Getenv(envTask); task != "" {
		os.Exit(contender(context.Background(), task, os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// needRedis skips where there is nothing to measure with.
func needRedis(t testing.TB) string {
	t.Helper()
	s, err := startRedis(t.Context())
	if errors.Is(err, errNoRedis) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stop)
	return s.addr
}

func TestRunPrintsOneObjectWithTheRatios(t *testing.T) {
	needRedis(t)
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"-json", "-window", "20ms", "-rounds", "1"}, &stdout, &stderr); code != 0 {
		t.Fatalf("exit code %d\n%s", code, &stderr)
	}
	decoder := json.NewDecoder(&stdout)
	var object map[string]any
	if err := decoder.Decode(&object); err != nil {
		t.Fatal(err)
	}
	if decoder.More() {
		t.Error("there is more on stdout than one object")
	}
	for _, key := range []string{
		"contended_cycles_ratio", "contended_p99_wait_ratio", "own_key_cycles_ratio",
		"three_process_cycles_ratio", "three_process_p99_wait_ratio",
	} {
		if ratio, _ := object[key].(float64); ratio <= 0 {
			t.Errorf("%s is %v", key, object[key])
		}
	}
	if figures, _ := object["figures"].([]any); len(figures) != len(scenes)*len(locks) {
		t.Errorf("%d figures", len(figures))
	}
}

// A lock that leaves all contenders of a process waiting has been measured: the
// others of a run are not to be lost by it.
func TestStuckProcessEndsTheRun(t *testing.T) {
	addr := needRedis(t)
	holder, err := openRedislock(addr)
	if err != nil {
		t.Fatal(err)
	}
	defer holder.close()
	if _, err := holder.acquire(t.Context(), "lock:{item}"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var o outcome
	err = contend(ctx, task{
		Lock: "watchdog", Addr: addr, Keys: []string{"item"}, Workers: 2, Witness: filepath.Join(t.TempDir(), "witness"), Window: maxWindow,
	}, func() error { time.AfterFunc(50*time.Millisecond, cancel); return nil }, func(all outcome) error { o = all; return nil })
	if err != nil || o.Stuck != 2 || o.Cycles != 0 || o.verify() != nil {
		t.Errorf("%d stuck, %d cycles, %v, %v", o.Stuck, o.Cycles, err, o.verify())
	}
	if (outcome{}).verify() == nil {
		t.Error("a process without a cycle is fine")
	}
}

func TestErrorOfAContenderIsLost(t *testing.T) {
	s := needRedis(t)
	_, err := measure(t.Context(), s, scenes[0], contestant{name: "nobody's"}, time.Second)
	if err == nil || !strings.Contains(err.Error(), `no lock "nobody's"`) {
		t.Errorf("it says %v", err)
	}
}

func TestWitnessSeesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "witness")
	w, err := openWitness(path, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	g := &w.keys[0]
	g.hold(1, 7)
	g.hold(2, 8)
	if err := w.verify(2); err != nil {
		t.Errorf("two who held it one after the other: %v", err)
	}
	if err := w.verify(3); err == nil {
		t.Error("a cycle that was lost was not seen")
	}
	other, err := openWitness(path, 1) // as another process does
	if err != nil {
		t.Fatal(err)
	}
	defer other.close()
	other.keys[0].holder.Store(3)
	g.hold(4, 9)
	if err := w.verify(2); err == nil || !strings.Contains(err.Error(), "1 overlaps") {
		t.Errorf("two who held it at once: %v", err)
	}
	other.keys[0].holder.Store(0)
	g.hold(5, 6)
	if err := w.verify(3); err == nil || !strings.Contains(err.Error(), "2 overlaps") {
		t.Errorf("a fence that went back: %v", err)
	}
}

// BenchmarkAlone is a cycle that nobody disturbs: its time and what it allocates.
func BenchmarkAlone(b *testing.B) {
	addr := needRedis(b)
	for _, l := range locks {
		b.Run(l.name, func(b *testing.B) {
			opened, err := l.open(addr)
			if err != nil {
				b.Fatal(err)
			}
			defer opened.close()
			if err := warm(b.Context(), opened, "item"); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				h, err := opened.acquire(b.Context(), "item")
				if err != nil {
					b.Fatal(err)
				}
				if err := h.release(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestWrongCalls(t *testing.T) {
	const flags = "allowed are -json, -only, -window, -rounds"
	for _, c := range []struct {
		args, want string
	}{
		{"-x", "flag provided but not defined: -x: " + flags},
		{"now", `unexpected argument "now": ` + flags},
		{"-rounds 0", "-rounds is 0: allowed is 1 to 9"},
		{"-rounds 10", "-rounds is 10: allowed is 1 to 9"},
		{"-rounds many", `"many" for flag -rounds`},
		{"-window 0s", "-window is 0s: allowed is above 0, up to 30s"},
		{"-window 31s", "-window is 31s: allowed is above 0, up to 30s"},
		{"-only nothing", `-only is "nothing": allowed are contended, three_process, own_key`},
		{"-only contended -json", "-only is not allowed with -json"},
	} {
		args := strings.Fields(c.args)
		var stdout, stderr bytes.Buffer
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // a call that is taken for a right one measures nothing
		code := run(ctx, args, &stdout, &stderr)
		if s := stderr.String(); code != 2 || stdout.Len() > 0 || strings.Count(s, "\n") != 1 || !strings.Contains(s, c.want) || !strings.HasSuffix(s, "; peerbench -h says more\n") {
			t.Errorf("%q: exit code %d, %q, %q; want %q", args, code, &stdout, s, c.want)
		}
		if len(scenes) != 3 {
			t.Fatalf("%q: a wrong call changed the scenes", args)
		}
	}
}
