package stocktest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"flashsale/internal/stock"
)

// Rig is an implementation under test, empty at first.
type Rig struct {
	Counter stock.Counter
	Desk    stock.Desk
	Outbox  stock.Outbox

	// LoseAnswers makes Deducts take place and fail nevertheless, until it is
	// called with false.
	LoseAnswers func(lose bool)

	// SetClock sets the clock that sales are judged by; nil: it can't be set.
	SetClock func(time.Time)

	// Persists says that what is accepted is persisted at once: the Desk then
	// finds purchases that are past pending.
	Persists bool
}

// CounterSuite checks a Counter and its Desk, without lock and without
// concurrency that would need one; a Counter that promises to be safe without a
// lock passes CounterRace too.
func CounterSuite(t *testing.T, newRig func(t *testing.T) Rig) {
	for name, test := range map[string]func(*testing.T, Rig){
		"preload again changes nothing":           preloadAgain,
		"preload with other terms is refused":     preloadOther,
		"preload keeps all terms":                 preloadTerms,
		"missing sale":                            missingSale,
		"accepted":                                accepted,
		"sold out exactly at the boundary":        soldOutAtBoundary,
		"numbers are no strings":                  numbersAreNoStrings,
		"repeated purchase is answered the same":  repeated,
		"repeated with another quantity":          repeatedOtherQuantity,
		"repeated after close and sold out":       repeatedAfterClose,
		"already bought names the purchase":       alreadyBought,
		"limit per user":                          overLimit,
		"before the start nothing is consumed":    beforeStart,
		"after the end":                           afterEnd,
		"window opens and ends to the instant":    windowEdges,
		"closed":                                  closed,
		"order of the checks":                     orderOfChecks,
		"batch is decided one by one, in order":   mixedBatch,
		"batch may name a purchase twice":         twiceInBatch,
		"empty batch":                             emptyBatch,
		"stale fence":                             staleFence,
		"fence 0 is not checked":                  fenceZero,
		"large fence comes back whole":            largeFence,
		"lost answer, then repeated":              lostAnswer,
		"purchases are found":                     purchases,
		"outbox has what was accepted, and only":  outboxHolds,
		"sales do not touch each other":           separateSales,
		"never below zero, however often refused": neverBelowZero,
	} {
		t.Run(name, func(t *testing.T) { test(t, newRig(t)) })
	}
}

// CounterRace checks what a Counter must stand that says it needs no lock: more
// buyers than units at once, each asking twice.
func CounterRace(t *testing.T, newRig func(t *testing.T) Rig) {
	const units, users = 20, 60
	rig := newRig(t)
	sale := preload(t, rig, func(s *stock.Sale) { s.Stock = units })
	var mu sync.Mutex
	verdicts := make(map[string]int)
	var buyers sync.WaitGroup
	for n := range 2 * users {
		buyers.Go(func() {
			user := fmt.Sprintf("user-%d", n%users)
			results, err := rig.Counter.Deduct(t.Context(), 0, []stock.Deduction{deduction(sale, user, 1)})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				verdicts[err.Error()]++
			case results[0].Err != nil:
				verdicts[results[0].Err.Error()]++
			case results[0].Replayed:
				verdicts["replayed"]++
			default:
				verdicts["accepted"]++
			}
		})
	}
	buyers.Wait()
	if verdicts["accepted"] != units || verdicts["replayed"] != units || verdicts[stock.ErrSoldOut.Error()] != 2*(users-units) {
		t.Errorf("verdicts are %v, want %d accepted, as many replayed, the rest sold out", verdicts, units)
	}
	wantCounts(t, rig, sale.ID, 0, units)
	if n := len(outboxEvents(t, rig, sale.ID)); n != units {
		t.Errorf("outbox holds %d events, want %d", n, units)
	}
}

// SaleID is the sale that the suites use, unless they need two.
const SaleID = "suite"

func preload(t *testing.T, rig Rig, change func(*stock.Sale)) stock.Sale {
	t.Helper()
	sale := stock.Sale{
		ID: SaleID, ItemID: "item", Title: "Thing", PriceCents: 1999, Stock: 10, PerUserLimit: 10,
		Variant: "watchdog", Fencing: true,
	}
	if change != nil {
		change(&sale)
	}
	if err := rig.Counter.Preload(t.Context(), sale); err != nil {
		t.Fatalf("preload: %v", err)
	}
	return sale
}

// deduction of a user; two by the same user and quantity are the same purchase.
func deduction(sale stock.Sale, user string, quantity int64) stock.Deduction {
	return stock.Deduction{
		PurchaseID: stock.PurchaseID(sale.ID, user, "key"), SaleID: sale.ID, ItemID: sale.ItemID, UserID: user,
		Quantity: quantity, PriceCents: sale.PriceCents, Variant: sale.Variant,
		At: time.Date(2026, 11, 11, 12, 0, 0, 123456000, time.UTC),
	}
}

func deduct(t *testing.T, rig Rig, fence uint64, batch ...stock.Deduction) []stock.Result {
	t.Helper()
	results, err := rig.Counter.Deduct(t.Context(), fence, batch)
	if err != nil {
		t.Fatalf("deduct: %v", err)
	}
	if len(results) != len(batch) {
		t.Fatalf("%d results for a batch of %d", len(results), len(batch))
	}
	return results
}

func wantResult(t *testing.T, got, want stock.Result) {
	t.Helper()
	if !errors.Is(got.Err, want.Err) || got.Err == nil != (want.Err == nil) {
		t.Errorf("result's error is %v, want %v", got.Err, want.Err)
		return
	}
	if want.Err == nil && (got.Remaining != want.Remaining || got.Fence != want.Fence || got.Replayed != want.Replayed) {
		t.Errorf("result is %+v, want %+v", got, want)
	}
}

// wantErr deducts without a fence and wants this refusal, nil for none.
func wantErr(t *testing.T, rig Rig, d stock.Deduction, want error) {
	t.Helper()
	if got := deduct(t, rig, 0, d)[0].Err; !errors.Is(got, want) {
		t.Errorf("%s: error is %v, want %v", d.UserID, got, want)
	}
}

func wantCounts(t *testing.T, rig Rig, saleID string, remaining, accepted int64) {
	t.Helper()
	snapshot, err := rig.Counter.Snapshot(t.Context(), saleID)
	if err != nil {
		t.Fatalf("snapshot: %v", err)
	}
	if snapshot.Remaining != remaining || snapshot.Accepted != accepted {
		t.Errorf("remaining %d, accepted %d; want %d, %d", snapshot.Remaining, snapshot.Accepted, remaining, accepted)
	}
}

func preloadAgain(t *testing.T, rig Rig) {
	sale := preload(t, rig, nil)
	deduct(t, rig, 0, deduction(sale, "ann", 3))
	if err := rig.Desk.Close(t.Context(), sale.ID); err != nil {
		t.Fatal(err)
	}
	preload(t, rig, nil)
	wantCounts(t, rig, sale.ID, 7, 3)
	wantErr(t, rig, deduction(sale, "bob", 1), stock.ErrSaleClosed)
}

func preloadOther(t *testing.T, rig Rig) {
	sale := preload(t, rig, nil)
	sale.Stock++
	if err := rig.Counter.Preload(t.Context(), sale); !errors.Is(err, stock.ErrSaleExists) {
		t.Errorf("error is %v, want ErrSaleExists", err)
	}
	wantCounts(t, rig, sale.ID, 10, 0)
}

func preloadTerms(t *testing.T, rig Rig) {
	sale := preload(t, rig, func(s *stock.Sale) {
		s.Title = "Ünïcode \"quoted\" 世界"
		s.Fencing = false
		s.StartsAt = time.Date(2020, 2, 29, 23, 59, 59, 999999000, time.FixedZone("", 3600))
		s.EndsAt = time.Date(2199, 1, 1, 0, 0, 0, 0, time.UTC)
		s.Work = stock.WorkRange{Min: 50 * time.Millisecond, Max: 200 * time.Millisecond}
	})
	snapshot, err := rig.Counter.Snapshot(t.Context(), sale.ID)
	if err != nil {
		t.Fatal(err)
	}
	if !snapshot.SameTerms(sale) {
		t.Errorf("terms are %+v, want %+v", snapshot.Sale, sale)
	}
	if snapshot.State != stock.StateOpen || snapshot.Cancelled != 0 || snapshot.LastFence != 0 {
		t.Errorf("snapshot is %+v", snapshot)
	}
}

func missingSale(t *testing.T, rig Rig) {
	ghost := stock.Sale{ID: "ghost", ItemID: "ghost"}
	_, snapshotErr := rig.Counter.Snapshot(t.Context(), ghost.ID)
	_, deductErr := rig.Counter.Deduct(t.Context(), 0, []stock.Deduction{deduction(ghost, "ann", 1)})
	for call, err := range map[string]error{
		"snapshot": snapshotErr, "deduct": deductErr, "close": rig.Desk.Close(t.Context(), ghost.ID),
	} {
		if !errors.Is(err, stock.ErrSaleNotFound) {
			t.Errorf("%s: error is %v, want ErrSaleNotFound", call, err)
		}
	}
}

func accepted(t *testing.T, rig Rig) {
	sale := preload(t, rig, nil)
	wantResult(t, deduct(t, rig, 17, deduction(sale, "ann", 3))[0], stock.Result{Remaining: 7, Fence: 17})
	wantCounts(t, rig, sale.ID, 7, 3)
}

func soldOutAtBoundary(t *testing.T, rig Rig) {
	sale := preload(t, rig, nil)
	wantErr(t, rig, deduction(sale, "greedy", 10), nil) // remaining == quantity: the last ones
	wantErr(t, rig, deduction(sale, "late", 1), stock.ErrSoldOut)

	sale = preload(t, rig, func(s *stock.Sale) { s.ID = "suite-2"; s.PerUserLimit = 11 })
	wantErr(t, rig, deduction(sale, "greedier", 11), stock.ErrSoldOut) // one too many
	wantErr(t, rig, deduction(sale, "modest", 9), nil)
	wantErr(t, rig, deduction(sale, "pair", 2), stock.ErrSoldOut)
	wantErr(t, rig, deduction(sale, "last", 1), nil)
	wantCounts(t, rig, sale.ID, 0, 10)
}

func numbersAreNoStrings(t *testing.T, rig Rig) {
	// By character, "9" is above "10" and "100".
	sale := preload(t, rig, func(s *stock.Sale) { s.Stock, s.PerUserLimit = 9, 100 })
	wantErr(t, rig, deduction(sale, "ann", 10), stock.ErrSoldOut)
	sale = preload(t, rig, func(s *stock.Sale) { s.ID = "suite-2"; s.Stock, s.PerUserLimit = 100, 10 })
	wantErr(t, rig, deduction(sale, "ann", 9), nil)
	sale = preload(t, rig, func(s *stock.Sale) { s.ID = "suite-3"; s.Stock, s.PerUserLimit = 100, 9 })
	wantErr(t, rig, deduction(sale, "ann", 10), stock.ErrOverLimit)
	// And "9" is a later fence than "10".
	deduct(t, rig, 9, deduction(sale, "bob", 1))
	deduct(t, rig, 10, deduction(sale, "cat", 1))
}

func repeated(t *testing.T, rig Rig) {
	sale := preload(t, rig, nil)
	first := deduction(sale, "ann", 2)
	deduct(t, rig, 5, first)
	deduct(t, rig, 6, deduction(sale, "bob", 3))
	for range 3 {
		wantResult(t, deduct(t, rig, 7, first)[0], stock.Result{Remaining: 8, Fence: 5, Replayed: true})
	}
	wantCounts(t, rig, sale.ID, 5, 5)
}

func repeatedOtherQuantity(t *testing.T, rig Rig) {
	sale := preload(t, rig, nil)
	deduct(t, rig, 0, deduction(sale, "ann", 2))
	wantErr(t, rig, deduction(sale, "ann", 1), stock.ErrKeyReused)
	wantCounts(t, rig, sale.ID, 8, 2)
}

func repeatedAfterClose(t *testing.T, rig Rig) {
	sale := preload(t, rig, nil)
	first := deduction(sale, "ann", 10)
	deduct(t, rig, 0, first)
	wantResult(t, deduct(t, rig, 0, first)[0], stock.Result{Replayed: true})
	if err := rig.Desk.Close(t.Context(), sale.ID); err != nil {
		t.Fatal(err)
	}
	wantResult(t, deduct(t, rig, 0, first)[0], stock.Result{Replayed: true})
}

func alreadyBought(t *testing.T, rig Rig) {
	sale := preload(t, rig, nil)
	first := deduction(sale, "ann", 1)
	deduct(t, rig, 0, first)
	second := first
	second.PurchaseID = stock.PurchaseID(sale.ID, "ann", "another key")
	result := deduct(t, rig, 0, second)[0]
	var bought *stock.AlreadyBoughtError
	if !errors.As(result.Err, &bought) || bought.PurchaseID != first.PurchaseID {
		t.Errorf("error is %v, want already bought as %s", result.Err, first.PurchaseID)
	}
	wantErr(t, rig, deduction(sale, "Ann", 1), nil) // another user
	wantCounts(t, rig, sale.ID, 8, 2)
}

func overLimit(t *testing.T, rig Rig) {
	sale := preload(t, rig, func(s *stock.Sale) { s.PerUserLimit = 2 })
	var over *stock.OverLimitError
	if err := deduct(t, rig, 0, deduction(sale, "ann", 3))[0].Err; !errors.As(err, &over) || over.Limit != 2 || !errors.Is(err, stock.ErrOverLimit) {
		t.Errorf("error is %v, want over the limit of 2", err)
	}
	wantErr(t, rig, deduction(sale, "bob", 2), nil)
	wantCounts(t, rig, sale.ID, 8, 2)
}

func beforeStart(t *testing.T, rig Rig) {
	sale := preload(t, rig, func(s *stock.Sale) { s.StartsAt = time.Now().Add(time.Hour) })
	wantErr(t, rig, deduction(sale, "ann", 1), stock.ErrSaleNotStarted)
	wantCounts(t, rig, sale.ID, 10, 0)
	if snapshot, _ := rig.Counter.Snapshot(t.Context(), sale.ID); snapshot.State != stock.StateScheduled {
		t.Errorf("state is %s, want scheduled", snapshot.State)
	}
	if events := outboxEvents(t, rig, sale.ID); len(events) > 0 {
		t.Errorf("outbox holds %v", events)
	}
}

func afterEnd(t *testing.T, rig Rig) {
	sale := preload(t, rig, func(s *stock.Sale) { s.EndsAt = time.Now().Add(-time.Hour) })
	wantErr(t, rig, deduction(sale, "ann", 1), stock.ErrSaleClosed)
	wantCounts(t, rig, sale.ID, 10, 0)
	if snapshot, _ := rig.Counter.Snapshot(t.Context(), sale.ID); snapshot.State != stock.StateClosed {
		t.Errorf("state is %s, want closed", snapshot.State)
	}
}

func windowEdges(t *testing.T, rig Rig) {
	if rig.SetClock == nil {
		t.Skip("this server's clock can't be set; the other rigs run it")
	}
	starts := time.Date(2026, 11, 11, 0, 0, 0, 0, time.UTC)
	ends := starts.Add(time.Hour)
	sale := preload(t, rig, func(s *stock.Sale) { s.StartsAt, s.EndsAt = starts, ends })
	for _, at := range []struct {
		now  time.Time
		want error
	}{
		{starts.Add(-time.Microsecond), stock.ErrSaleNotStarted},
		{starts, nil},
		{ends.Add(-time.Microsecond), nil},
		{ends, stock.ErrSaleClosed},
	} {
		rig.SetClock(at.now)
		wantErr(t, rig, deduction(sale, "user-"+at.now.Format("150405.000000"), 1), at.want)
	}
	wantCounts(t, rig, sale.ID, 8, 2)
}

func closed(t *testing.T, rig Rig) {
	sale := preload(t, rig, nil)
	for range 2 {
		if err := rig.Desk.Close(t.Context(), sale.ID); err != nil {
			t.Fatal(err)
		}
	}
	wantErr(t, rig, deduction(sale, "ann", 1), stock.ErrSaleClosed)
	wantCounts(t, rig, sale.ID, 10, 0)
	if snapshot, _ := rig.Counter.Snapshot(t.Context(), sale.ID); snapshot.State != stock.StateClosed {
		t.Errorf("state is %s, want closed", snapshot.State)
	}
}

func orderOfChecks(t *testing.T, rig Rig) {
	sale := preload(t, rig, func(s *stock.Sale) { s.Stock, s.PerUserLimit = 2, 2 })
	deduct(t, rig, 0, deduction(sale, "ann", 2)) // sold out from here on
	other := deduction(sale, "ann", 2)
	other.PurchaseID = stock.PurchaseID(sale.ID, "ann", "another key")
	wantErr(t, rig, other, stock.ErrAlreadyBought) // before sold out
	other.Quantity = 3
	wantErr(t, rig, other, stock.ErrOverLimit) // before already bought
	if err := rig.Desk.Close(t.Context(), sale.ID); err != nil {
		t.Fatal(err)
	}
	wantErr(t, rig, other, stock.ErrSaleClosed)                       // before the limit
	wantErr(t, rig, deduction(sale, "ann", 1), stock.ErrKeyReused)    // before closed
	wantErr(t, rig, deduction(sale, "other", 1), stock.ErrSaleClosed) // before sold out
}

func mixedBatch(t *testing.T, rig Rig) {
	sale := preload(t, rig, func(s *stock.Sale) { s.Stock, s.PerUserLimit = 5, 4 })
	known := deduction(sale, "known", 1)
	deduct(t, rig, 3, known) // 4 left
	again := deduction(sale, "ann", 1)
	again.PurchaseID = stock.PurchaseID(sale.ID, "ann", "another key")
	results := deduct(t, rig, 4,
		deduction(sale, "ann", 2), // 2 left
		known,
		deduction(sale, "big", 4),    // does not fit
		deduction(sale, "greedy", 5), // above the limit
		again,                        // bought a moment ago, in this batch
		deduction(sale, "bob", 2),    // fits exactly
		deduction(sale, "cat", 1),    // nothing left
	)
	for i, want := range []stock.Result{
		{Remaining: 2, Fence: 4},
		{Remaining: 4, Fence: 3, Replayed: true},
		{Err: stock.ErrSoldOut},
		{Err: stock.ErrOverLimit},
		{Err: stock.ErrAlreadyBought},
		{Remaining: 0, Fence: 4},
		{Err: stock.ErrSoldOut},
	} {
		wantResult(t, results[i], want)
	}
	wantCounts(t, rig, sale.ID, 0, 5)
}

func twiceInBatch(t *testing.T, rig Rig) {
	sale := preload(t, rig, nil)
	d := deduction(sale, "ann", 2)
	results := deduct(t, rig, 9, d, d, deduction(sale, "ann", 3))
	wantResult(t, results[0], stock.Result{Remaining: 8, Fence: 9})
	wantResult(t, results[1], stock.Result{Remaining: 8, Fence: 9, Replayed: true})
	wantResult(t, results[2], stock.Result{Err: stock.ErrKeyReused})
	wantCounts(t, rig, sale.ID, 8, 2)
	if events := outboxEvents(t, rig, sale.ID); len(events) != 1 {
		t.Errorf("outbox holds %d events, want 1", len(events))
	}
}

func emptyBatch(t *testing.T, rig Rig) {
	if results, err := rig.Counter.Deduct(t.Context(), 1, nil); err != nil || len(results) > 0 {
		t.Errorf("results %v, error %v", results, err)
	}
}

func staleFence(t *testing.T, rig Rig) {
	sale := preload(t, rig, nil)
	first := deduction(sale, "new", 1)
	deduct(t, rig, 8, first)
	for name, batch := range map[string][]stock.Deduction{
		"one that could be had":  {deduction(sale, "old", 1)},
		"one that could not":     {deduction(sale, "greedy", 11)},
		"one known, one new":     {first, deduction(sale, "old", 1)},
		"one new, and one known": {deduction(sale, "old", 1), first},
	} {
		if _, err := rig.Counter.Deduct(t.Context(), 7, batch); !errors.Is(err, stock.ErrStale) {
			t.Errorf("%s: error is %v, want ErrStale", name, err)
		}
	}
	wantCounts(t, rig, sale.ID, 9, 1)
	wantResult(t, deduct(t, rig, 7, first)[0], stock.Result{Remaining: 9, Fence: 8, Replayed: true})
	deduct(t, rig, 8, deduction(sale, "same-holder", 1))
}

func fenceZero(t *testing.T, rig Rig) {
	sale := preload(t, rig, nil)
	deduct(t, rig, 8, deduction(sale, "fenced", 1))
	wantResult(t, deduct(t, rig, 0, deduction(sale, "unfenced", 1))[0], stock.Result{Remaining: 8})
	if snapshot, _ := rig.Counter.Snapshot(t.Context(), sale.ID); snapshot.LastFence != 8 {
		t.Errorf("last fence is %d, want 8", snapshot.LastFence)
	}
}

// largeFence is a fence as the locks make them: microseconds, 16 digits. As a
// JSON number written by Lua it would lose the last two.
func largeFence(t *testing.T, rig Rig) {
	const fence = 1_789_123_456_789_013
	sale := preload(t, rig, nil)
	d := deduction(sale, "ann", 1)
	deduct(t, rig, fence, d)
	wantResult(t, deduct(t, rig, fence, d)[0], stock.Result{Remaining: 9, Fence: fence, Replayed: true})
	if _, err := rig.Counter.Deduct(t.Context(), fence-1, []stock.Deduction{deduction(sale, "bob", 1)}); !errors.Is(err, stock.ErrStale) {
		t.Errorf("error is %v, want ErrStale", err)
	}
	if snapshot, _ := rig.Counter.Snapshot(t.Context(), sale.ID); snapshot.LastFence != fence {
		t.Errorf("last fence is %d, want %d", snapshot.LastFence, uint64(fence))
	}
	if events := outboxEvents(t, rig, sale.ID); len(events) != 1 || events[0].Fence != fence {
		t.Errorf("events are %+v, want one with fence %d", events, uint64(fence))
	}
}

func lostAnswer(t *testing.T, rig Rig) {
	sale := preload(t, rig, nil)
	d := deduction(sale, "ann", 4)
	rig.LoseAnswers(true)
	_, err := rig.Counter.Deduct(t.Context(), 3, []stock.Deduction{d})
	rig.LoseAnswers(false)
	if !errors.Is(err, stock.ErrOutcomeUnknown) || errors.Is(err, stock.ErrUnavailable) {
		t.Fatalf("error is %v, want ErrOutcomeUnknown alone", err)
	}
	wantResult(t, deduct(t, rig, 4, d)[0], stock.Result{Remaining: 6, Fence: 3, Replayed: true})
	wantCounts(t, rig, sale.ID, 6, 4)
	if events := outboxEvents(t, rig, sale.ID); len(events) != 1 {
		t.Errorf("outbox holds %d events, want 1", len(events))
	}
}

func purchases(t *testing.T, rig Rig) {
	sale := preload(t, rig, func(s *stock.Sale) { s.Stock = 1000 })
	want := make(map[string]stock.Purchase)
	var batch []stock.Deduction
	for n := range 700 {
		d := deduction(sale, fmt.Sprintf("user-%d", n), int64(n%2+1))
		want[d.PurchaseID] = stock.Purchase{
			PurchaseID: d.PurchaseID, SaleID: sale.ID, UserID: d.UserID, Quantity: d.Quantity,
			PriceCents: sale.PriceCents, Fence: 6, Status: stock.StatusPending, CreatedAt: d.At,
		}
		batch = append(batch, d)
	}
	for i, result := range deduct(t, rig, 6, batch...) {
		if result.Err != nil { // sold out towards the end
			delete(want, batch[i].PurchaseID)
		}
	}
	got := make(map[string]stock.Purchase)
	err := rig.Desk.EachPurchase(t.Context(), sale.ID, func(p stock.Purchase) error {
		got[p.PurchaseID] = rig.pending(p)
		return nil
	})
	if err != nil || len(got) != len(want) {
		t.Errorf("%d purchases and error %v, want %d", len(got), err, len(want))
	}
	for id, purchase := range want {
		if got[id] != purchase {
			t.Fatalf("purchase is %+v, want %+v", got[id], purchase)
		}
	}
	first := batch[0].PurchaseID
	if found, err := rig.Desk.Purchase(t.Context(), first); err != nil || rig.pending(found) != want[first] {
		t.Errorf("purchase is %+v, %v, want %+v", found, err, want[first])
	}

	enough := errors.New("enough")
	if err := rig.Desk.EachPurchase(t.Context(), sale.ID, func(stock.Purchase) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("error is %v, want the callback's", err)
	}
	if err := rig.Desk.EachPurchase(t.Context(), "ghost", func(stock.Purchase) error { return enough }); err != nil {
		t.Errorf("error is %v for a sale without purchases", err)
	}
	for _, id := range []string{stock.PurchaseID(sale.ID, "nobody", "key"), stock.PurchaseID("ghost", "ann", "key"), "nonsense", ""} {
		if _, err := rig.Desk.Purchase(t.Context(), id); !errors.Is(err, stock.ErrPurchaseNotFound) {
			t.Errorf("purchase %q: error is %v, want ErrPurchaseNotFound", id, err)
		}
	}
}

// pending is a purchase as every rig has it, once it was seen to be what this
// one promises.
func (rig Rig) pending(p stock.Purchase) stock.Purchase {
	if rig.Persists && p.Status == stock.StatusPersisted && !p.PersistedAt.IsZero() {
		p.Status, p.PersistedAt = stock.StatusPending, time.Time{}
	}
	return p
}

func outboxHolds(t *testing.T, rig Rig) {
	sale := preload(t, rig, func(s *stock.Sale) { s.Stock = 3 })
	ann, bob := deduction(sale, "ann", 1), deduction(sale, "bob", 2)
	deduct(t, rig, 21, ann, bob, deduction(sale, "cat", 1))
	deduct(t, rig, 22, ann)
	want := []stock.Event{ann.Event(21), bob.Event(21)}
	if got := outboxEvents(t, rig, sale.ID); !slices.Equal(got, want) {
		t.Errorf("events are\n%+v, want\n%+v", got, want)
	}
}

func separateSales(t *testing.T, rig Rig) {
	one := preload(t, rig, nil)
	two := preload(t, rig, func(s *stock.Sale) { s.ID = "suite-2" })
	deduct(t, rig, 50, deduction(one, "ann", 4))
	deduct(t, rig, 40, deduction(two, "ann", 1))
	wantCounts(t, rig, one.ID, 6, 4)
	wantCounts(t, rig, two.ID, 9, 1)
}

func neverBelowZero(t *testing.T, rig Rig) {
	sale := preload(t, rig, func(s *stock.Sale) { s.Stock, s.PerUserLimit = 3, 2 })
	deduct(t, rig, 0, deduction(sale, "ann", 2))
	for n := range 5 {
		wantErr(t, rig, deduction(sale, fmt.Sprintf("user-%d", n), 2), stock.ErrSoldOut)
		wantCounts(t, rig, sale.ID, 1, 2)
	}
}
