package bench

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestRaceCountsEveryAnswer(t *testing.T) {
	api := newFakeAPI(t)
	var phases []Phase
	b := api.bench(t, Options{Seed: 7, AuditWait: 20 * time.Second, Progress: func(p Progress) {
		if len(phases) == 0 || phases[len(phases)-1] != p.Phase {
			phases = append(phases, p.Phase)
		}
	}})
	row, err := b.Race(t.Context(), Race{Variant: "atomic", SaleID: "race-1", Users: 30, Stock: 10})
	if err != nil {
		t.Fatal(err)
	}
	if row.Attempts != 30 || row.Accepted != 10 || row.SoldOut != 20 || row.Busy != 0 || row.Failed != 0 {
		t.Errorf("answers: %+v", row)
	}
	if row.Unsold != 0 || row.Persisted != 10 || !row.Settled || row.P99Ms <= 0 || row.AcceptedPerS <= 0 || row.AttemptsPerS < row.AcceptedPerS {
		t.Errorf("figures: %+v", row)
	}
	if row.LockWaitP99Ms != nil || row.LockHoldP99Ms != nil {
		t.Error("lock times though the API told of no lock")
	}
	if want := (newSale{ID: "race-1", ItemID: "race-1", Title: "race measurement of atomic", PriceCents: 100, Stock: 10, Variant: "atomic", PerUserLimit: 1}); api.sales["race-1"] != want {
		t.Errorf("sale: %+v", api.sales["race-1"])
	}
	if !slices.Equal(api.audits, []string{"deep=true&wait=20s"}) {
		t.Errorf("audits: %q", api.audits)
	}
	if !slices.Equal(phases, []Phase{PhaseSetup, PhaseRun, PhaseAudit}) {
		t.Errorf("phases: %v", phases)
	}
	if faults := Faults(row); len(faults) > 0 {
		t.Errorf("faults: %v", faults)
	}
}

func TestRowHasWhatTheAuditSays(t *testing.T) {
	api := newFakeAPI(t)
	api.audit = func(newSale, int64) map[string]any {
		return map[string]any{"accepted": 8, "cancelled": 2, "persisted": 3, "rejected": 4, "oversold": 2, "lost_updates": 6, "undersold": 7, "duplicates": 9,
			"settled": true, "deep": map[string]any{"compared": 10}}
	}
	row, err := api.bench(t, Options{}).Race(t.Context(), Race{Variant: "none", SaleID: "s", Users: 2, Stock: 1})
	if err != nil {
		t.Fatal(err)
	}
	got := []int64{row.AuditAccepted, row.Cancelled, row.Persisted, row.Rejected, row.Oversold, row.LostUpdates, row.Undersold, row.Duplicates}
	if !slices.Equal(got, []int64{8, 2, 3, 4, 2, 6, 7, 9}) || row.OversellRate != 0.25 || !row.Settled || row.Deep == nil || row.Deep.Compared != 10 {
		t.Errorf("row %+v", row)
	}
}

func TestRaceRepeatsAfterBusyAsTheSamePurchase(t *testing.T) {
	api := newFakeAPI(t)
	refused := map[string]int{}
	api.purchase = func(api *fakeAPI, w http.ResponseWriter, p purchase) bool {
		refused[p.user]++
		if refused[p.user] > 2 {
			return false
		}
		answerWith(w, http.StatusLocked, "busy")
		return true
	}
	row, err := api.bench(t, Options{}).Race(t.Context(), Race{Variant: "setnx", SaleID: "s", Users: 3, Stock: 2})
	if err != nil {
		t.Fatal(err)
	}
	if row.Attempts != 9 || row.Busy != 6 || row.Accepted != 2 || row.SoldOut != 1 {
		t.Errorf("answers: %+v", row)
	}
	if row.P50Ms < 10 {
		t.Errorf("P50 %v ms leaves out the two pauses of 5 ms at least", row.P50Ms)
	}
	keys := map[string]string{}
	for _, p := range api.seen {
		if p.key == "" || keys[p.user] != "" && keys[p.user] != p.key {
			t.Errorf("user %s: keys %q and %q", p.user, keys[p.user], p.key)
		}
		keys[p.user] = p.key
	}
}

func TestRaceGivesUpWhenPatienceIsOver(t *testing.T) {
	api := newFakeAPI(t)
	api.purchase = func(_ *fakeAPI, w http.ResponseWriter, _ purchase) bool {
		answerWith(w, http.StatusLocked, "busy")
		return true
	}
	row, err := api.bench(t, Options{Patience: 40 * time.Millisecond}).Race(t.Context(), Race{Variant: "setnx", SaleID: "s", Users: 3, Stock: 2})
	if err != nil {
		t.Fatal(err)
	}
	if row.Accepted != 0 || row.Unsold != 2 || row.Busy < 6 || row.Busy != row.Attempts {
		t.Errorf("row: %+v", row)
	}
}

func TestFailuresAreCountedByKind(t *testing.T) {
	api := newFakeAPI(t)
	api.purchase = func(api *fakeAPI, w http.ResponseWriter, p purchase) bool {
		switch len(api.seen) {
		case 1, 2:
			answerWith(w, http.StatusServiceUnavailable, "unavailable")
		case 3:
			answerWith(w, http.StatusConflict, "already_bought")
		case 4: // no X-Outcome: the body's code counts
			w.WriteHeader(http.StatusServiceUnavailable)
			w.Write([]byte(`{"code":"outcome_unknown"}`))
		default:
			return false
		}
		return true
	}
	row, err := api.bench(t, Options{}).Race(t.Context(), Race{Variant: "atomic", SaleID: "s", Users: 8, Stock: 7})
	if err != nil {
		t.Fatal(err)
	}
	if row.Failed != 4 || row.Accepted != 4 {
		t.Errorf("row: %+v", row)
	}
	slices.Sort(row.Failures)
	if want := []string{"1x 409 already_bought", "1x 503 outcome_unknown", "2x 503 unavailable"}; !slices.Equal(row.Failures, want) {
		t.Errorf("failures %q, want %q", row.Failures, want)
	}
}

func TestNoAnswerIsAFailure(t *testing.T) {
	api := newFakeAPI(t)
	api.purchase = func(*fakeAPI, http.ResponseWriter, purchase) bool { panic(http.ErrAbortHandler) }
	row, err := api.bench(t, Options{}).Race(t.Context(), Race{Variant: "atomic", SaleID: "s", Users: 3, Stock: 2})
	if err != nil {
		t.Fatal(err)
	}
	if row.Failed != 3 || row.Attempts != 3 || row.Unsold != 2 || !slices.Equal(row.Failures, []string{"3x no answer: EOF"}) {
		t.Errorf("row: %+v", row)
	}
}

func TestOnlyTheFirstKindsOfFailuresAreKept(t *testing.T) {
	var f failures
	for i := range 100 {
		f.add(strings.Repeat("x", i))
		f.add("y" + strings.Repeat("z", 1000))
	}
	list := f.list()
	if len(list) != maxKinds {
		t.Fatalf("%d kinds", len(list))
	}
	for _, kind := range list {
		if len(kind) > maxKindLength+20 {
			t.Errorf("kind of %d bytes", len(kind))
		}
	}
}

func TestSameSeedSameUsers(t *testing.T) {
	users := func(seed uint64) []string {
		api := newFakeAPI(t)
		if _, err := api.bench(t, Options{Seed: seed}).Race(t.Context(), Race{Variant: "none", SaleID: "s", Users: 20, Stock: 3}); err != nil {
			t.Fatal(err)
		}
		names := strings.Fields(api.users())
		slices.Sort(names)
		return slices.Compact(names)
	}
	first, again, other := users(5), users(5), users(6)
	if len(first) != 20 || !slices.Equal(first, again) {
		t.Errorf("seed 5: %v, then %v", first, again)
	}
	if slices.Equal(first, other) {
		t.Error("seed 6 made the same users")
	}
}

func TestClosedBuysAsSomebodyElseEachTime(t *testing.T) {
	api := newFakeAPI(t)
	api.purchase = func(_ *fakeAPI, w http.ResponseWriter, _ purchase) bool {
		w.Header().Set("Server-Timing", "lock_wait;dur=1.5, lock_hold;dur=0.25")
		return false
	}
	row, err := api.bench(t, Options{Seed: 1}).Closed(t.Context(), Closed{Variant: "watchdog", SaleID: "s", Users: 4, Duration: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	users := strings.Fields(api.users())
	slices.Sort(users)
	if len(users) < 8 || len(users) != len(slices.Compact(users)) {
		t.Errorf("%d purchases by %d users", row.Attempts, len(slices.Compact(users)))
	}
	if row.Accepted != int64(len(users)) || row.Stock < 1_000_000 || row.Unsold != 0 {
		t.Errorf("row: %+v", row)
	}
	if row.LockWaitP99Ms == nil || *row.LockWaitP99Ms != 1.5 || *row.LockHoldP99Ms != 0.25 {
		t.Errorf("lock times: %v, %v", row.LockWaitP99Ms, row.LockHoldP99Ms)
	}
	if got := float64(row.Accepted) / row.AcceptedPerS; got < 0.1 || got > 5 {
		t.Errorf("makespan %v s of a run of 0.1 s", got)
	}
}

func TestCancelEndsPromptly(t *testing.T) {
	for name, run := range map[string]func(context.Context, *Bench) (Row, error){
		"race": func(ctx context.Context, b *Bench) (Row, error) {
			return b.Race(ctx, Race{Variant: "setnx", SaleID: "s", Users: 10, Stock: 5})
		},
		"closed": func(ctx context.Context, b *Bench) (Row, error) {
			return b.Closed(ctx, Closed{Variant: "setnx", SaleID: "s", Users: 10, Duration: time.Hour})
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			api := newFakeAPI(t)
			api.purchase = func(_ *fakeAPI, w http.ResponseWriter, _ purchase) bool {
				cancel()
				answerWith(w, http.StatusLocked, "busy")
				return true
			}
			begun := time.Now()
			_, err := run(ctx, api.bench(t, Options{}))
			if !errors.Is(err, context.Canceled) {
				t.Errorf("error %v", err)
			}
			if took := time.Since(begun); took > 3*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

func TestMeasurementThatCannotBeMadeIsAnError(t *testing.T) {
	api := newFakeAPI(t)
	b := api.bench(t, Options{})
	for name, race := range map[string]Race{
		"as many users as units": {Users: 100, Stock: 100},
		"no stock":               {Users: 100},
		"no users":               {Users: 0, Stock: -1},
		"too many users":         {Users: MaxUsers + 1, Stock: 1},
	} {
		if _, err := b.Race(t.Context(), race); err == nil || len(api.sales) > 0 {
			t.Errorf("%s: error %v, sales %v", name, err, api.sales)
		}
	}
	for name, closed := range map[string]Closed{
		"no users":    {Duration: time.Second},
		"no duration": {Users: 1},
		"for ever":    {Users: 1, Duration: 1000 * time.Hour},
	} {
		if _, err := b.Closed(t.Context(), closed); err == nil || len(api.sales) > 0 {
			t.Errorf("%s: error %v, sales %v", name, err, api.sales)
		}
	}
	stranger, err := New(Options{URL: api.url, AdminToken: "wrong"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = stranger.Race(t.Context(), Race{Variant: "none", SaleID: "s", Users: 2, Stock: 1})
	if err == nil || !strings.Contains(err.Error(), "401") || !strings.Contains(err.Error(), "who are you") {
		t.Errorf("refused sale: %v", err)
	}
	for name, options := range map[string]Options{
		"no URL": {}, "audit wait": {URL: "x", AuditWait: time.Hour}, "patience": {URL: "x", Patience: -1},
	} {
		if _, err := New(options); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestServerTiming(t *testing.T) {
	for header, want := range map[string]struct{ wait, hold bool }{
		"lock_wait;dur=1, lock_hold;dur=2":                        {true, true},
		`lock_hold;desc="held";dur=2,cache;dur=9,lock_wait;dur=1`: {true, true},
		"lock_wait;dur=1":                   {true, false}, // refused: never held
		"lock_wait;dur=x, lock_hold;dur=2":  {false, true},
		"lock_wait;dur=-1, lock_hold;dur=2": {false, true},
		"lock_wait, lock_hold":              {},
		"":                                  {},
	} {
		wait, hold, hasWait, hasHold := lockTiming([]string{header})
		if hasWait != want.wait || hasHold != want.hold || hasWait && wait != time.Millisecond || hasHold && hold != 2*time.Millisecond {
			t.Errorf("%q: %v %v, %v %v", header, wait, hasWait, hold, hasHold)
		}
	}
}
