package bench

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files")

func pointer[T any](v T) *T { return &v }

func sampleRows() []Row {
	return []Row{
		{Variant: "none", Model: ModelRace, Users: 300, Stock: 100, Accepted: 187, AuditAccepted: 187, Persisted: 100, Rejected: 87,
			Oversold: 87, OversellRate: 87.0 / 187, LostUpdates: 87, Settled: true},
		{Variant: "none", Model: ModelClosed, Users: 64, Stock: 1_000_000, Accepted: 7024, AuditAccepted: 7024, Persisted: 7024, LostUpdates: 5120, Settled: true,
			AcceptedPerS: 3512.3, P50Ms: 17.21, P95Ms: 25.5, P99Ms: 31.04},
		{Variant: "setnx", Model: ModelRace, Users: 300, Stock: 100, Accepted: 98, AuditAccepted: 98, Persisted: 98, Unsold: 2, Settled: true},
		{Variant: "setnx", Model: ModelClosed, Users: 64, Stock: 1_000_000, Accepted: 700, AuditAccepted: 700, Persisted: 700, Settled: true,
			AcceptedPerS: 350.5, P50Ms: 150, P95Ms: 420.26, P99Ms: 801, LockWaitP99Ms: pointer(790.0), LockHoldP99Ms: pointer(2.0)},
		{Variant: "atomic", Model: ModelRace, Users: 300, Stock: 100, Accepted: 100, AuditAccepted: 100, Persisted: 100, Settled: true},
		{Variant: "atomic", Model: ModelClosed, Users: 64, Stock: 1_000_000, Accepted: 24690, AuditAccepted: 24690, Persisted: 24689, Settled: false,
			AcceptedPerS: 12345, P50Ms: 5.004, P95Ms: 9.99, P99Ms: 12},
		SkippedRow("function", ModelRace, "needs redis-server"),
		SkippedRow("function", ModelClosed, "needs redis-server"),
	}
}

func TestTableAndFindings(t *testing.T) {
	for name, rows := range map[string][]Row{
		"table":       sampleRows(),
		"table-sound": sampleRows()[:2],
		"table-empty": nil,
	} {
		t.Run(name, func(t *testing.T) {
			var text bytes.Buffer
			if err := WriteTable(&text, rows); err != nil {
				t.Fatal(err)
			}
			for _, line := range Findings(rows) {
				text.WriteString(line + "\n")
			}
			golden(t, "testdata/"+name+".golden", text.Bytes())
		})
	}
}

// A lock that is broken on purpose isn't praised for a run in which nobody
// crashed, and no measure for the safe ones.
func TestFindingsSetBrokenLocksApart(t *testing.T) {
	rows := []Row{
		{Variant: "setnx-bare", Broken: true, Model: ModelRace, Users: 300, Stock: 100, Accepted: 100, AuditAccepted: 100, Persisted: 100, Settled: true},
		{Variant: "setnx-bare", Broken: true, Model: ModelClosed, Accepted: 10, AuditAccepted: 10, Persisted: 10, Settled: true, AcceptedPerS: 9000},
		{Variant: "setnx-expire", Broken: true, Model: ModelRace, Users: 300, Stock: 100, Accepted: 101, AuditAccepted: 101, Oversold: 1, Persisted: 100, Rejected: 1, Settled: true},
	}
	alone := Findings(rows)
	if !strings.Contains(alone[1], "setnx-bare: broken on purpose, exact only because nobody crashed or paused in this run.") ||
		!strings.Contains(alone[1], "setnx-expire: broken on purpose, and it showed") || strings.Contains(alone[1], "Nobody gets in between") {
		t.Errorf("%s", alone[1])
	}
	if alone[2] != "Speed: no safe variant was measured." {
		t.Errorf("%s", alone[2])
	}
	beside := Findings(append(rows, sampleRows()[2:4]...))
	if strings.Contains(beside[2], "setnx-bare") || !strings.Contains(beside[2], "setnx sells most") {
		t.Errorf("%s", beside[2])
	}
}

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// The keys are read by scripts that are not ours to change.
func TestRowKeysAreFixed(t *testing.T) {
	const keys = `accepted accepted_per_s attempts attempts_per_s busy cancelled duplicates failed lock_hold_p99_ms lock_wait_p99_ms lost_updates model oversell_rate oversold p50_ms p95_ms p99_ms persisted rejected settled skipped sold_out stock undersold unsold users variant`
	text, err := json.Marshal(Row{})
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := json.Unmarshal(text, &object); err != nil {
		t.Fatal(err)
	}
	var got []string
	for key := range object {
		got = append(got, key)
	}
	slices.Sort(got)
	if strings.Join(got, " ") != keys {
		t.Errorf("keys\n%s\nwant\n%s", strings.Join(got, " "), keys)
	}
	for _, key := range []string{"skipped", "lock_wait_p99_ms", "lock_hold_p99_ms"} {
		if object[key] != nil {
			t.Errorf("%s is %v instead of null", key, object[key])
		}
	}
}

func TestThousands(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567", 100000: "100,000"} {
		if got := Thousands(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
