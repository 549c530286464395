package bench

import (
	"context"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestScheduleIsFixedBeforehand(t *testing.T) {
	constant := slices.Collect(schedule(Constant, 4, time.Second, 1))
	if want := []time.Duration{0, 250 * time.Millisecond, 500 * time.Millisecond, 750 * time.Millisecond}; !slices.Equal(constant, want) {
		t.Errorf("constant: %v", constant)
	}

	const rate, d = 1000.0, 20 * time.Second
	poisson := slices.Collect(schedule(Poisson, rate, d, 7))
	if n, want := float64(len(poisson)), rate*d.Seconds(); math.Abs(n-want) > 5*math.Sqrt(want) {
		t.Errorf("%v arrivals, want about %v", n, want)
	}
	if !slices.IsSorted(poisson) || poisson[len(poisson)-1] >= d {
		t.Error("not in order, or after the end")
	}
	// Of independent arrivals 1/e of the gaps are longer than the mean one.
	longer := 0
	for i := 1; i < len(poisson); i++ {
		if poisson[i]-poisson[i-1] > time.Second/rate {
			longer++
		}
	}
	if share := float64(longer) / float64(len(poisson)); math.Abs(share-1/math.E) > 0.02 {
		t.Errorf("%.3f of the gaps are longer than the mean: not Poisson", share)
	}
	sequence := schedule(Poisson, rate, d, 7)
	for range 2 {
		if !slices.Equal(poisson, slices.Collect(sequence)) {
			t.Error("the same seed made another schedule")
		}
	}
	if slices.Equal(poisson, slices.Collect(schedule(Poisson, rate, d, 8))) {
		t.Error("another seed made the same schedule")
	}
}

func TestOpenCountsWhoWasDue(t *testing.T) {
	api := newFakeAPI(t)
	const rate, d = 200.0, 200 * time.Millisecond
	row, err := api.bench(t, Options{Seed: 3}).Open(t.Context(), Open{Variant: "atomic", SaleID: "s", Rate: rate, Duration: d, Work: Work{Min: time.Millisecond, Max: 2 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	want := int64(len(slices.Collect(schedule(Poisson, rate, d, 3))))
	users := strings.Fields(api.users())
	slices.Sort(users)
	if row.Model != ModelOpen || row.Accepted != want || row.Detail.Arrivals != want || row.Detail.Dropped != 0 || len(slices.Compact(users)) != int(want) {
		t.Errorf("%d due, %d users: %+v", want, len(users), row)
	}
	if l := row.Detail.AcceptedLatency; l.Count != want || l.P50 <= 0 || l.Max < l.P99 || row.Detail.LagP99Ms == nil || row.Detail.GoodputPerS <= 0 {
		t.Errorf("detail: %+v", row.Detail)
	}
	if work := api.sales["s"].Work; work == nil || *work != (workMs{1, 2}) {
		t.Errorf("work %+v", work)
	}
}

// stalling answers at once but for one pause, during which nobody is answered.
func stalling(t *testing.T, after int, pause time.Duration) *fakeAPI {
	api := newFakeAPI(t)
	api.purchase = func(api *fakeAPI, _ http.ResponseWriter, _ purchase) bool {
		if len(api.seen) == after {
			time.Sleep(pause) // holding the lock of the fake
		}
		return false
	}
	return api
}

// A closed-model user that waits asks nothing meanwhile, so that the one long
// wait drowns among many short ones. Buyers who were due in the pause would all
// have waited, and the open model says so.
func TestPauseIsNotOmitted(t *testing.T) {
	const pause = 400 * time.Millisecond
	closed, err := stalling(t, 20, pause).bench(t, Options{}).
		Closed(t.Context(), Closed{Variant: "atomic", SaleID: "s", Users: 1, Duration: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	open, err := stalling(t, 20, pause).bench(t, Options{}).
		Open(t.Context(), Open{Variant: "atomic", SaleID: "s", Rate: 200, Arrivals: Constant, Duration: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if closed.Detail.AcceptedLatency.Max < 400 || closed.Detail.AcceptedLatency.P95 > 100 {
		t.Errorf("closed: %+v", closed.Detail.AcceptedLatency)
	}
	// Of a second's buyers two fifths were due in the pause: a quarter waited for
	// more than 150 ms of it, a tenth for more than 300.
	waited := map[float64]float64{}
	for _, point := range open.Detail.AcceptedLatency.Curve {
		waited[point.Percentile] = point.Ms
	}
	if waited[75] < 100 || waited[90] < 250 {
		t.Errorf("open: %+v", open.Detail.AcceptedLatency)
	}
}

// A generator that is late is no excuse either.
func TestLatencyCountsFromTheInstantThatWasDue(t *testing.T) {
	api := newFakeAPI(t)
	b := api.bench(t, Options{})
	api.sales["s"] = newSale{Stock: 1}
	m := &measurement{client: newClient(api.url, "secret", 1, time.Second), saleID: "s", start: time.Now()}
	defer m.client.close()
	b.user(m, 0).purchase(t.Context(), "u", time.Second, time.Now().Add(-time.Minute))
	if got := m.acceptedLatency.quantile(1); got < time.Minute {
		t.Errorf("latency %v of a buyer who was due a minute ago", got)
	}
}

func TestBuyersBeyondTheBoundAreDroppedAndCounted(t *testing.T) {
	api := newFakeAPI(t)
	var once sync.Once
	release := make(chan struct{})
	api.purchase = func(*fakeAPI, http.ResponseWriter, purchase) bool { <-release; return false }
	b := api.bench(t, Options{Progress: func(p Progress) {
		if p.Phase == PhaseRun && p.Elapsed > 200*time.Millisecond { // all have been due by then
			once.Do(func() { close(release) })
		}
	}})
	row, err := b.Open(t.Context(), Open{Variant: "atomic", SaleID: "s", Rate: 500, Arrivals: Constant, InFlight: 5, Duration: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if row.Detail.Arrivals != 50 || row.Detail.Dropped != 45 || row.Accepted != 5 || row.Detail.AcceptedLatency.Count != 5 {
		t.Errorf("%d accepted: %+v", row.Accepted, row.Detail)
	}
}

func TestOpenEndsPromptlyWhenCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	api := newFakeAPI(t)
	api.purchase = func(*fakeAPI, http.ResponseWriter, purchase) bool { cancel(); return false }
	begun := time.Now()
	_, err := api.bench(t, Options{}).Open(ctx, Open{Variant: "atomic", SaleID: "s", Rate: 1000, Duration: time.Hour})
	if err == nil || time.Since(begun) > 3*time.Second {
		t.Errorf("error %v after %v", err, time.Since(begun))
	}
}

func TestOpenRefusesWhatCannotBeMade(t *testing.T) {
	b := newFakeAPI(t).bench(t, Options{})
	for name, open := range map[string]Open{
		"no rate":       {Duration: time.Second},
		"negative rate": {Rate: -1, Duration: time.Second},
		"no number":     {Rate: math.NaN(), Duration: time.Second},
		"too fast":      {Rate: MaxRate + 1, Duration: time.Second},
		"no duration":   {Rate: 1},
		"arrivals":      {Rate: 1, Duration: time.Second, Arrivals: "uniform"},
		"in flight":     {Rate: 1, Duration: time.Second, InFlight: -1},
	} {
		if _, err := b.Open(t.Context(), open); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// Answers that say no are quick and many: neither their rate nor their latency
// may flatter the sales.
func TestSoldOutAnswersAreApart(t *testing.T) {
	api := newFakeAPI(t)
	api.purchase = func(api *fakeAPI, _ http.ResponseWriter, _ purchase) bool {
		if api.accepted["s"] < 5 {
			time.Sleep(20 * time.Millisecond) // a sale is slow
		}
		return false
	}
	row, err := api.bench(t, Options{}).Closed(t.Context(), Closed{Variant: "atomic", SaleID: "s", Users: 2, Duration: 400 * time.Millisecond, Stock: 5})
	if err != nil {
		t.Fatal(err)
	}
	d := row.Detail
	if row.Stock != 5 || d.AcceptedLatency.Count != 5 || d.SoldOutLatency.Count != row.SoldOut || row.SoldOut < 20 {
		t.Fatalf("%d sold out: %+v", row.SoldOut, d)
	}
	if d.AcceptedLatency.P50 < 20 || d.SoldOutLatency.P50 > 15 {
		t.Errorf("accepted P50 %v ms, sold out P50 %v ms", d.AcceptedLatency.P50, d.SoldOutLatency.P50)
	}
	if d.GoodputPerS > 60 || d.GoodputPerS < 1.5*row.AcceptedPerS || d.SoldOutPerS < 2*d.GoodputPerS {
		t.Errorf("%v accepted/s while there was stock, %v in all, %v sold out/s", d.GoodputPerS, row.AcceptedPerS, d.SoldOutPerS)
	}
}

func TestWhoGivesUpIsCounted(t *testing.T) {
	api := newFakeAPI(t)
	api.purchase = func(_ *fakeAPI, w http.ResponseWriter, _ purchase) bool {
		answerWith(w, http.StatusLocked, "busy")
		return true
	}
	row, err := api.bench(t, Options{Patience: 20 * time.Millisecond}).Race(t.Context(), Race{Variant: "setnx", SaleID: "s", Users: 3, Stock: 2})
	if err != nil || row.Detail.GaveUp != 3 || row.Detail.AcceptedLatency.Count != 0 {
		t.Errorf("%v: %+v", err, row.Detail)
	}
}

func TestCPUShareIsOfAllProcessors(t *testing.T) {
	before, start := readCPU(), time.Now()
	if !before.known {
		t.Skip("this system doesn't tell")
	}
	for time.Since(start) < 100*time.Millisecond { // one processor, busy
	}
	share := before.shareSince(start, time.Now())
	if share == nil || *share <= 0.02 || *share > 1 {
		t.Errorf("share %v", share)
	}
	if none := (cpuTime{}).shareSince(start, time.Now()); none != nil {
		t.Errorf("share %v of an unknown time", *none)
	}
}
