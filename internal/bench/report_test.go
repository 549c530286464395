package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

// sampleReport has two runs of each model, one oversold variant, one that is
// skipped, and whatever else a report can tell.
func sampleReport(model Model) *Report {
	latency := func(p50 float64) Latency {
		return Latency{Count: 10_000, P50: p50, P90: 2 * p50, P95: 3 * p50, P99: 4 * p50, P999: 5 * p50, Max: 6 * p50,
			Curve: []Point{{50, p50}, {90, 2 * p50}, {95, 3 * p50}, {99, 4 * p50}, {99.9, 5 * p50}}}
	}
	plan := Plan{Variants: []string{"none", "watchdog", "etcd"}, Runs: 2, Duration: 2 * time.Second, RaceUsers: 300, RaceStock: 100,
		Work: Work{Min: 5 * time.Millisecond, Max: 20 * time.Millisecond}}
	if model == ModelOpen {
		plan.Loads = []Load{{Rate: 100}, {Rate: 2500}}
	} else {
		plan.Loads = []Load{{Users: 64}}
	}
	var samples []Sample
	for _, step := range plan.steps() {
		if step.Variant == "etcd" {
			samples = append(samples, Sample{Run: step.Run, Rate: step.Load.Rate, Row: SkippedRow(step.Variant, step.Load.Model(), "needs etcd")})
			samples[len(samples)-1].Users = step.Load.Users
			continue
		}
		factor := float64(step.Run)
		s := Sample{Run: step.Run, Rate: step.Load.Rate, Row: Row{Variant: step.Variant, Model: step.Load.Model(), Users: step.Load.Users, Stock: 1_000_000,
			Attempts: 1000, Accepted: 1000, AcceptedPerS: 500 * factor, AttemptsPerS: 510 * factor, Settled: true, Persisted: 1000, AuditAccepted: 1000}}
		s.Detail = Detail{GoodputPerS: 500 * factor, AcceptedLatency: latency(10 * factor), SoldOutLatency: Latency{Curve: []Point{}}, CPUShare: pointer(0.4 + 0.1*factor), TookS: 2}
		if step.Variant == NoLock {
			s.GoodputPerS *= 2
		} else {
			s.LockWaitP99Ms, s.LockHoldP99Ms = pointer(9*factor), pointer(1.5)
			s.AcceptedLatency.Count -= int64(step.Run - 1) // in the second run just too few for a P99.9
		}
		switch {
		case s.Model == ModelRace:
			s.Users, s.Stock = 300, 100
			s.Accepted, s.AuditAccepted, s.Persisted, s.SoldOut = 100, 100, 100, 200
			s.SoldOutLatency, s.SoldOutPerS = latency(1), 4000
			if step.Variant == NoLock {
				s.Accepted, s.AuditAccepted, s.SoldOut, s.Oversold, s.Rejected, s.OversellRate = 150, 150, 150, 50, 50, 1.0/3
			}
		case s.Model == ModelOpen:
			s.Arrivals, s.LagP99Ms = 200, pointer(1.25)
			if step.Load.Rate > 1000 && step.Variant == "watchdog" {
				s.Arrivals, s.Dropped, s.GaveUp, s.Busy = 5000, 4000, 3, 17
			}
		case step.Variant == NoLock:
			s.LostUpdates = 900
		}
		samples = append(samples, s)
	}
	r := &Report{
		MeasuredAt: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC), Command: "flashsale bench --work 5ms-20ms", InProcess: true,
		Environment: Environment{Commit: "0123456789abcdef", CommitFrom: "build", Modified: true, Go: "go1.26", OS: "Debian, linux/amd64",
			CPU: "A processor", Cores: 2, GOMAXPROCS: 2, MemoryBytes: 24 << 30},
		Servers: map[string]Server{"redis": {"redis-server 7.0.15", "127.0.0.1:1", true}, "kafka": {"Apache Kafka", "127.0.0.1:2", true}, "sql": {"SQLite 3", "x", false}},
		Remark:  "A remark.",
	}
	b := &Bench{options: Options{Seed: 7, Patience: 10 * time.Second, Timeout: 15 * time.Second, AuditWait: time.Minute}}
	r.Parameters = b.ParametersOf(plan)
	r.Complete(plan, samples, nil)
	return r
}

func TestReport(t *testing.T) {
	write := func(r *Report, charts ...[2]string) []byte {
		var text bytes.Buffer
		if err := r.WriteMarkdown(&text, charts); err != nil {
			t.Fatal(err)
		}
		return text.Bytes()
	}
	golden(t, "testdata/report-closed.golden", write(sampleReport(ModelClosed), [2]string{"A chart", "oversell.svg"}))
	golden(t, "testdata/report-open.golden", write(sampleReport(ModelOpen)))

	partial := sampleReport(ModelClosed)
	partial.Complete(Plan{Runs: 5, Variants: []string{"a", "b"}, Loads: []Load{{Users: 1}}}, partial.Samples[:3], errors.New("interrupted"))
	partial.Servers, partial.InProcess, partial.URL = nil, false, "http://h:1"
	text := string(write(partial))
	for _, want := range []string{"**PARTIAL: 3 of 10 measurements were made, then: interrupted.**", "generator's own share", "the API at http://h:1, which doesn't tell"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}

// A fault of one run isn't averaged away.
func TestReportNamesFaultsOfEachRun(t *testing.T) {
	r := sampleReport(ModelClosed)
	samples := r.Samples
	for i := range samples {
		if samples[i].Variant == "watchdog" && samples[i].Model == ModelRace && samples[i].Run == 2 {
			samples[i].Oversold, samples[i].AuditAccepted, samples[i].Accepted, samples[i].Persisted = 1, 101, 101, 101
		}
	}
	r.Complete(Plan{}, samples, nil)
	if len(r.Faults) != 1 || r.Faults[0] != "run 2, watchdog, race: oversold: 101 units were sold of 100" {
		t.Errorf("faults %q", r.Faults)
	}
	if text := strings.Join(r.Conclusions(), "\n"); !strings.Contains(text, "watchdog: units were oversold, lost or gone") {
		t.Error(text)
	}
}

// A lock that is broken on purpose gets no praise for a run in which nobody
// crashed, and isn't the fastest that is safe.
func TestReportSetsBrokenLocksApart(t *testing.T) {
	r := sampleReport(ModelClosed)
	for i := range r.Samples {
		r.Samples[i].Broken = r.Samples[i].Variant == "watchdog"
	}
	r.Complete(Plan{}, r.Samples, nil)
	text := strings.Join(r.Conclusions(), "\n")
	if !strings.Contains(text, "watchdog: broken on purpose, exact only because") || strings.Contains(text, "watchdog: nothing oversold") || strings.Contains(text, "fastest") {
		t.Error(text)
	}
}

func TestReportAsJSON(t *testing.T) {
	text, err := json.Marshal(sampleReport(ModelOpen))
	if err != nil {
		t.Fatal(err)
	}
	var r struct {
		Partial    *string
		Parameters map[string]any
		Summaries  []struct {
			Variant  string
			Accepted *Figure        `json:"accepted_per_s"`
			Latency  map[string]any `json:"accepted_latency_ms"`
			Dropped  *Figure
			Skipped  *string
		}
		Samples []map[string]any
		Faults  []string
	}
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	if r.Partial != nil || len(r.Summaries) != 9 || len(r.Samples) != 18 || r.Faults == nil || r.Parameters["arrivals"] != "poisson" {
		t.Errorf("%s", text)
	}
	if s := r.Summaries[5]; s.Variant != "watchdog" || *s.Dropped != (Figure{4000, 4000, 4000}) || *s.Accepted != (Figure{750, 500, 1000}) || s.Latency["p99"] == nil {
		t.Errorf("%+v", s)
	}
	if s := r.Summaries[8]; s.Skipped == nil || *s.Skipped != "needs etcd" {
		t.Errorf("%+v", s)
	}
}

func TestArticle(t *testing.T) {
	r := sampleReport(ModelClosed)
	var samples []Sample
	for _, s := range r.Samples {
		if s.Skipped != nil {
			continue
		}
		copies := []Sample{s}
		if s.Variant == "watchdog" {
			other := s
			other.Variant = "setnx"
			other.GoodputPerS /= 2
			copies = append(copies, other)
		}
		for _, c := range copies {
			samples = append(samples, c)
			if c.Model == ModelClosed {
				c.Users, c.GoodputPerS = 1, c.GoodputPerS/4
				samples = append(samples, c)
			}
		}
	}
	plan := ArticlePlan(2, time.Second)
	r.Parameters = (&Bench{}).ParametersOf(plan)
	r.Complete(plan, samples, nil)
	a := NewArticle(r)
	var text bytes.Buffer
	if err := a.Write(&text); err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/article.golden", text.Bytes())

	// Theirs are what the project is about; they are not to drift.
	for i, want := range []Reported{{1500, 0.12, 1}, {800, 0, 0.533}, {1200, 0, 0.8}} {
		if a.Rows[i].Theirs != want {
			t.Errorf("row %d: %+v", i, a.Rows[i].Theirs)
		}
	}
	r.Complete(plan, samples[:2], errors.New("interrupted"))
	text.Reset()
	if err := NewArticle(r).Write(&text); err != nil || !strings.Contains(text.String(), "PARTIAL: 2 of") || !strings.Contains(text.String(), "nothing to compare") {
		t.Errorf("%v\n%s", err, text.String())
	}
}

func TestEnvironment(t *testing.T) {
	e := Here(t.Context())
	if e.Go == "" || e.Cores < 1 || e.OS == "" {
		t.Errorf("%+v", e)
	}
	var stamped Environment
	stamped.stamp([]debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"}})
	if got := stamped.lines()[0]; got != "Commit: abc, with uncommitted changes" {
		t.Error(got)
	}
	if got := (Environment{}).lines()[0]; !strings.Contains(got, "unknown") {
		t.Error(got)
	}
}
