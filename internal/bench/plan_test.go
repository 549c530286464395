package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestFigures(t *testing.T) {
	for _, test := range []struct {
		values []float64
		want   Figure
		text   string
	}{
		{[]float64{5}, Figure{5, 5, 5}, "5"},
		{[]float64{9, 1, 4}, Figure{4, 1, 9}, "4 (1-9)"},
		{[]float64{4, 1, 9, 3}, Figure{3.5, 1, 9}, "4 (1-9)"},
		{[]float64{1200, 1200.2}, Figure{1200.1, 1200, 1200.2}, "1,200"},
	} {
		f := figure(test.values)
		if f == nil || *f != test.want || f.text(whole) != test.text {
			t.Errorf("%v: %+v, %s", test.values, f, f.text(whole))
		}
	}
	if f := figure(nil); f != nil || f.text(whole) != "-" || f.percent() != "-" {
		t.Errorf("of nothing: %v", f)
	}
	if text := (&Figure{0.5, 0.25, 0.75}).percent(); text != "50.0 (25.0-75.0) %" {
		t.Error(text)
	}
}

func TestRunsAreInterleaved(t *testing.T) {
	plan := Plan{Variants: []string{"a", "b", "c"}, Loads: []Load{{Rate: 1}, {Rate: 2}}, Runs: 2, RaceUsers: 2}
	var got []string
	for i, step := range plan.steps() {
		got = append(got, fmt.Sprintf("%d%s%v", step.Run, step.Variant, step.Load.Rate))
		if step.N != i+1 || step.Of != 18 {
			t.Errorf("step %d: %d of %d", i, step.N, step.Of)
		}
	}
	if want := "1a0 1a1 1a2 1b0 1b1 1b2 1c0 1c1 1c2 2b0 2b1 2b2 2c0 2c1 2c2 2a0 2a1 2a2"; strings.Join(got, " ") != want {
		t.Errorf("%v", got)
	}
}

func stage() Stage {
	return Stage{
		SaleID: func(name string) string { return name }, Broken: func(string) bool { return false },
		Begin: func(Step) {}, Done: func(Step, Sample) {}, Cause: func(err error) error { return err },
	}
}

func TestPlanMeasuresEverything(t *testing.T) {
	api := newFakeAPI(t)
	plan := Plan{WarmUp: 10 * time.Millisecond, Variants: []string{"atomic", "etcd", "function"}, Loads: []Load{{Users: 2}}, Runs: 2, Duration: 30 * time.Millisecond, RaceUsers: 3, RaceStock: 2}
	api.refuse = map[string]string{"etcd": `{"errors":[{"field":"variant","reason":"is not offered here: it needs etcd"}]}`}
	s := stage()
	s.Lacking = map[string]string{"function": "needs a real Redis"}
	var begun, done []int
	warmedUp := ""
	s.Begin = func(step Step) {
		if step.Run == 0 {
			warmedUp += step.Variant + " "
			return
		}
		begun = append(begun, step.N)
	}
	s.Done = func(step Step, _ Sample) { done = append(done, step.N) }
	samples, err := api.bench(t, Options{CloseSales: true}).Run(t.Context(), plan, s)
	if err != nil {
		t.Fatal(err)
	}
	if want := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}; !slices.Equal(begun, want) || !slices.Equal(done, want) {
		t.Errorf("begun %v, done %v", begun, done)
	}
	var got []string
	for _, sample := range samples[:6] {
		why := ""
		if sample.Skipped != nil {
			why = " " + *sample.Skipped
		} else if !sample.Settled || sample.Accepted == 0 || sample.AcceptedLatency.Count != sample.Accepted {
			t.Errorf("sample %+v", sample)
		}
		got = append(got, fmt.Sprintf("%d %s %s%s", sample.Run, sample.Variant, sample.Model, why))
	}
	if want := []string{"1 atomic race", "1 atomic closed", "1 etcd race needs etcd", "1 etcd closed needs etcd",
		"1 function race needs a real Redis", "1 function closed needs a real Redis"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if warmedUp != "atomic etcd " {
		t.Errorf("warmed up: %s", warmedUp)
	}
	if len(api.sales) != 5 || len(api.closed) != 5 {
		t.Errorf("%d sales, closed %v", len(api.sales), api.closed)
	}
}

// What was measured before something broke is not lost.
func TestPartOfAPlanIsKept(t *testing.T) {
	plan := Plan{Variants: []string{"atomic"}, Loads: []Load{{Users: 1}}, Runs: 3, Duration: 20 * time.Millisecond}
	for name, end := range map[string]func(cancel func(), api *fakeAPI){
		"interrupted": func(cancel func(), _ *fakeAPI) { cancel() },
		"API is gone": func(_ func(), api *fakeAPI) { api.refuse = map[string]string{"atomic": "gone"} },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			api := newFakeAPI(t)
			s := stage()
			s.Done = func(step Step, _ Sample) {
				if step.N == 2 {
					end(cancel, api)
				}
			}
			s.Cause = func(err error) error { return fmt.Errorf("because: %w", err) }
			samples, err := api.bench(t, Options{}).Run(ctx, plan, s)
			if len(samples) != 2 || err == nil || !strings.HasPrefix(err.Error(), "because: ") || errors.Is(err, context.Canceled) != (name == "interrupted") {
				t.Fatalf("%d samples, error %v", len(samples), err)
			}
			var r Report
			r.Complete(plan, samples, err)
			if r.Partial == nil || r.Done != 2 || r.Planned != 3 || len(r.Summaries) != 1 || r.Summaries[0].Runs != 2 {
				t.Errorf("report %+v", r)
			}
		})
	}
}

func TestRatiosAreTakenWithinARun(t *testing.T) {
	sample := func(run int, variant string, perS float64) Sample {
		s := Sample{Run: run, Row: Row{Variant: variant, Model: ModelClosed, Users: 64, Settled: true}}
		s.GoodputPerS = perS
		return s
	}
	// The machine was ten times as fast in the second run.
	summaries := Summarise([]Sample{sample(1, NoLock, 100), sample(1, "x", 50), sample(2, "x", 600), sample(2, NoLock, 1000), sample(3, "x", 1)})
	if len(summaries) != 2 || summaries[1].Runs != 3 || *summaries[1].OfNoLock != (Figure{0.55, 0.5, 0.6}) || *summaries[1].AcceptedPerS != (Figure{50, 1, 600}) {
		t.Errorf("%+v, %+v", summaries[1].OfNoLock, summaries[1].AcceptedPerS)
	}
}

func TestOneUnsettledRunIsEnough(t *testing.T) {
	samples := []Sample{{Row: Row{Variant: "x", Settled: true}}, {Row: Row{Variant: "x", Settled: false}}}
	if Summarise(samples)[0].Settled {
		t.Error("settled")
	}
}

// A row's keys and a detail's stand side by side.
func TestSampleKeys(t *testing.T) {
	text, err := json.Marshal(Sample{})
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := json.Unmarshal(text, &object); err != nil {
		t.Fatal(err)
	}
	const more = "accepted_latency arrivals cpu_share dropped gave_up goodput_per_s lag_p99_ms rate_per_s run sold_out_latency sold_out_per_s took_s"
	for key := range strings.FieldsSeq(more) {
		if _, ok := object[key]; !ok {
			t.Errorf("%s is missing", key)
		}
	}
	if len(object) != 27+12 {
		t.Errorf("%d keys: %s", len(object), text)
	}
}

func TestRefusalForAnotherReasonIsNoSkip(t *testing.T) {
	for body, want := range map[string]string{
		`{"errors":[{"field":"variant","reason":"is not offered here: it needs etcd"}]}`: "needs etcd",
		`{"errors":[{"field":"variant","reason":"is unknown"}]}`:                         "is unknown",
		`{"errors":[{"field":"stock","reason":"is too small"}]}`:                         "",
		`{"errors":[{"field":"variant"},{"field":"stock"}]}`:                             "",
		`gone`: "",
	} {
		if got := (&refusal{status: http.StatusUnprocessableEntity, body: []byte(body)}).lacking(); got != want {
			t.Errorf("%s: %q", body, got)
		}
	}
	if got := (&refusal{status: http.StatusConflict, body: []byte(`{"errors":[{"field":"variant","reason":"x"}]}`)}).lacking(); got != "" {
		t.Errorf("409: %q", got)
	}
}
