//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"flashsale/internal/app"
	"flashsale/internal/servers/servertest"
)

var small = size{
	rounds: 1, clients: 8, load: 50 * time.Millisecond, stock: 20, buyers: 60, ledger: 50 * time.Millisecond,
	delay: 200 * time.Millisecond, sampled: 1, settled: 20 * time.Second, perTest: 20 * time.Second,
}

var keys = []string{"combining_over_none", "atomic_over_gin", "atomic_over_single_script", "watchdog_over_setnx", "syncer_over_bare_insert", "ledger_p99_ms", "two_api_over_one"}

// The whole programme in a few seconds. Its figures mean nothing; that nothing
// is oversold or lost, and that the result is complete, does.
func TestRatios(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	cfg := app.Config{
		RedisAddrs: []string{servertest.Redis(t)}, KafkaBrokers: []string{strings.Join(servertest.Kafka(t), ",")}, MySQLDSN: servertest.RealSQL(t),
	}
	r, err := measure(t.Context(), cfg, small, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		if value, _ := got[key].(float64); value <= 0 {
			t.Errorf("%s is %v", key, got[key])
		}
	}
	if len(got) != len(keys)+1 || got["raw"] == nil {
		t.Errorf("the object is %s", text)
	}
	if strings.Contains(string(text), "null") {
		t.Errorf("something was not measured: %s", text)
	}
	if r.Raw.Audited < 6 {
		t.Errorf("%d sales audited", r.Raw.Audited)
	}
	var table bytes.Buffer
	r.print(&table)
	for _, want := range []string{"atomic / Gin without back end", "two APIs / one", "oversold 0, lost 0"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("no %q in\n%s", want, table.String())
		}
	}
	if strings.Contains(table.String(), notMeasured) {
		t.Errorf("something was not measured:\n%s", table.String())
	}
}

// A log that interrupts the programme when it tells of this.
type interrupting struct {
	io.Writer
	at        string
	interrupt func()
}

func (w interrupting) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(w.at)) {
		w.interrupt()
	}
	return w.Writer.Write(p)
}

// What was measured before a part fails is printed, beside the error that names
// the part.
func TestWhatWasMeasuredBeforeAFailureIsPrinted(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	env := map[string]string{servertest.EnvRedis: servertest.Redis(t), servertest.EnvKafka: strings.Join(servertest.Kafka(t), ","), servertest.EnvSQL: servertest.RealSQL(t)}
	defer func(size size) { fullSize = size }(fullSize)
	fullSize = small
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var stdout bytes.Buffer
	err := run(ctx, []string{"-json"}, func(name string) string { return env[name] }, &stdout, interrupting{t.Output(), "race: atomic", cancel})
	if !errors.Is(err, context.Canceled) || !strings.HasPrefix(err.Error(), "ledger rate: ") {
		t.Errorf("error %v", err)
	}
	var got map[string]any
	if err := json.Unmarshal(stdout.Bytes(), &got); err != nil {
		t.Fatalf("%v: %s", err, stdout.String())
	}
	for _, key := range keys {
		value, there := got[key]
		switch key {
		case "syncer_over_bare_insert", "ledger_p99_ms":
			if !there || value != nil {
				t.Errorf("%s is %v, %t", key, value, there)
			}
		default:
			if value, _ := value.(float64); value <= 0 {
				t.Errorf("%s is %v", key, got[key])
			}
		}
	}
	if raw, _ := got["raw"].(map[string]any); len(got) != len(keys)+1 || len(raw["paths"].(map[string]any)) != len(paths)+2 {
		t.Errorf("the object is %s", stdout.String())
	}
}

func TestWhatWasNotMeasuredIsCalledSo(t *testing.T) {
	f := &figures{Rate: []float64{3}, P50: []float64{1}, P99: []float64{1}, Busy: []int{0}, Generator: []float64{.1}}
	r := &result{Raw: raw{Paths: map[string]*figures{"gin": f, "atomic": f}}}
	r.finish()
	var table bytes.Buffer
	r.print(&table)
	for _, want := range []string{
		`atomic +3 `, `none +not measured\n`, `bare insert +not measured\n`,
		`atomic / Gin without back end +1\.00 `, `watchdog / setnx +not measured +>= 2\n`, `syncer / what the API accepts +not measured `,
		`201 to row, p99 in ms +not measured +< 1000\n`, `two APIs / one +not measured +stated\n`, `oversold and lost: not measured;`,
	} {
		if !regexp.MustCompile(`(?m)^` + want).MatchString(table.String()) {
			t.Errorf("no line %q in\n%s", want, table.String())
		}
	}
	if strings.Contains(table.String(), "MISSED") {
		t.Errorf("what was not measured is marked:\n%s", table.String())
	}
}

func TestRatioIsTheMedianOfTheRounds(t *testing.T) {
	for _, c := range []struct{ a, b []float64 }{
		{[]float64{30, 10, 2}, []float64{10, 10, 1}},
		{[]float64{2, 9}, []float64{1}},    // the second round ended too early
		{[]float64{2, 9}, []float64{1, 0}}, // no ratio, and no number in JSON
	} {
		if got := ratio(c.a, c.b); got == nil || *got != 2 {
			t.Errorf("ratio(%v, %v) is %v", c.a, c.b, got)
		}
	}
	if got := ratio([]float64{1}, nil); got != nil {
		t.Errorf("got %v without a round", *got)
	}
	if values := []float64{3, 1, 2}; median(values) != 2 || !slices.Equal(values, []float64{3, 1, 2}) {
		t.Errorf("median(%v) is %v", values, median(values))
	}
}

func TestMissedTargetsAreMarked(t *testing.T) {
	f := func(rate float64) *figures {
		return &figures{Rate: []float64{rate}, P50: []float64{1}, P99: []float64{1}, Generator: []float64{.1}}
	}
	r := &result{Raw: raw{Paths: map[string]*figures{"one_api": f(1), "two_apis": f(1)}, SyncerRows: []float64{5}, BareRows: []float64{5}}, LedgerP99: new(1000.)}
	for _, p := range paths {
		r.Raw.Paths[p.name] = f(1)
	}
	r.finish()
	var table bytes.Buffer
	r.print(&table)
	if got := strings.Count(table.String(), "MISSED"); got != 4 { // of the ratios that are 1; and the delay
		t.Errorf("%d are marked, want 4:\n%s", got, table.String())
	}
}

func TestWrongCalls(t *testing.T) {
	const flags = "allowed are -json, -only, -profile"
	for args, want := range map[string]string{
		"-x":                    "flag provided but not defined: -x: " + flags,
		"now":                   `unexpected argument "now": ` + flags,
		"-only nothing":         `-only: "nothing": allowed are ledger, gin, atomic, `,
		"-only gin,":            `-only: "": allowed are`,
		"-profile /nonexistent": "-profile: only with -only",
		"-as both":              `-as: "both": allowed are gin, single`,
	} {
		var stdout, stderr bytes.Buffer
		err := run(t.Context(), strings.Fields(args), func(string) string { return "" }, &stdout, &stderr)
		if wrong, is := errors.AsType[wrongCall](err); !is || !strings.Contains(wrong.Error(), want) || stdout.Len()+stderr.Len() > 0 {
			t.Errorf("%s: %v, %q, %q; want %q", args, err, &stdout, &stderr, want)
		}
	}
}
