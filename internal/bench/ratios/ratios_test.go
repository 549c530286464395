//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"flashsale/internal/app"
	"flashsale/internal/servers/servertest"
)

// The whole programme in a few seconds. Its figures mean nothing; that nothing
// is oversold or lost, and that the result is complete, does.
func TestRatios(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	cfg := app.Config{
		RedisAddrs: []string{servertest.Redis(t)}, KafkaBrokers: []string{strings.Join(servertest.Kafka(t), ",")}, MySQLDSN: servertest.RealSQL(t),
	}
	small := size{
		rounds: 1, clients: 8, load: 50 * time.Millisecond, stock: 20, buyers: 60, ledger: 50 * time.Millisecond,
		delay: 200 * time.Millisecond, sampled: 1, settled: 20 * time.Second, perTest: 20 * time.Second,
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
	keys := []string{"combining_over_none", "atomic_over_gin", "atomic_over_single_script", "watchdog_over_setnx", "syncer_over_bare_insert", "ledger_p99_ms", "two_api_over_one"}
	for _, key := range keys {
		if value, _ := got[key].(float64); value <= 0 {
			t.Errorf("%s is %v", key, got[key])
		}
	}
	if len(got) != len(keys)+1 || got["raw"] == nil {
		t.Errorf("the object is %s", text)
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
}

func TestRatioIsTheMedianOfTheRounds(t *testing.T) {
	if got := ratio([]float64{30, 10, 2}, []float64{10, 10, 1}); got != 2 {
		t.Errorf("got %v", got)
	}
	if values := []float64{3, 1, 2}; median(values) != 2 || !slices.Equal(values, []float64{3, 1, 2}) {
		t.Errorf("median(%v) is %v", values, median(values))
	}
}

func TestMissedTargetsAreMarked(t *testing.T) {
	f := func(rate float64) *figures {
		return &figures{Rate: []float64{rate}, P50: []float64{1}, P99: []float64{1}, Generator: []float64{.1}}
	}
	r := &result{Raw: raw{Paths: map[string]*figures{"one_api": f(1), "two_apis": f(1)}, SyncerRows: []float64{5}, BareRows: []float64{5}}, LedgerP99: 1000}
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
