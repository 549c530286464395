package metrics

import (
	"context"
	"errors"
	"log/slog"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"flashsale/internal/lock"
	"flashsale/internal/stock"
)

func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	rec := httptest.NewRecorder()
	m.Handler().ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
	if rec.Code != 200 {
		t.Fatalf("%d: %s", rec.Code, rec.Body)
	}
	return rec.Body.String()
}

func wants(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no line %q in\n%s", line, flashsaleLines(text))
		}
	}
}

func flashsaleLines(text string) string {
	var kept []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "flashsale") && !strings.Contains(line, "_bucket") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

type sellerFunc func() (stock.Receipt, error)

func (f sellerFunc) Purchase(context.Context, stock.Request) (stock.Receipt, error) { return f() }

// answers is a seller that gives these, one after the other.
func answers(given ...any) stock.Seller {
	return sellerFunc(func() (stock.Receipt, error) {
		variant, err := given[0].(string), given[1]
		given = given[2:]
		if err == nil {
			return stock.Receipt{Variant: variant}, nil
		}
		return stock.Receipt{Variant: variant}, err.(error)
	})
}

func outcomeOf(err error) string {
	switch {
	case err == nil:
		return "accepted"
	case errors.Is(err, stock.ErrSoldOut):
		return "sold_out"
	default:
		return err.Error()
	}
}

func TestSeller(t *testing.T) {
	m := New([]string{"atomic", "setnx"})
	s := m.Seller(answers("atomic", nil, "atomic", nil, "atomic", stock.ErrSoldOut, "", stock.ErrSoldOut), []string{"accepted", "sold_out"}, outcomeOf)
	wants(t, scrape(t, m), `flashsale_purchases_total{outcome="sold_out",variant="unknown"} 0`) // no errors, rather than no data
	for range 4 {
		_, _ = s.Purchase(t.Context(), stock.Request{SaleID: "secret"})
	}
	text := scrape(t, m)
	wants(t, text, `flashsale_purchases_total{outcome="accepted",variant="atomic"} 2`, `flashsale_purchases_total{outcome="sold_out",variant="atomic"} 1`,
		`flashsale_purchases_total{outcome="sold_out",variant="unknown"} 1`, `flashsale_purchase_seconds_count{outcome="accepted",variant="atomic"} 2`)
	if strings.Contains(text, "secret") {
		t.Error("a sale is a label")
	}
}

// What Redis or an error says becomes no label unless it is known beforehand.
func TestLabelsAreBounded(t *testing.T) {
	m := New([]string{"atomic"})
	s := m.Seller(answers("made up", nil, "atomic", errors.New("made up"), "made up", errors.New("made up")), []string{"accepted", "sold_out"}, outcomeOf)
	for range 3 {
		_, _ = s.Purchase(t.Context(), stock.Request{})
	}
	settler := m.Settler(settlerFunc(func() ([]stock.Verdict, error) { return []stock.Verdict{stock.VerdictRejected, "made up"}, nil }))
	_, _ = settler.Settle(t.Context(), []stock.Event{{Variant: "made up"}, {Variant: "atomic"}})
	text := scrape(t, m)
	wants(t, text, `flashsale_purchases_total{outcome="accepted",variant="unknown"} 1`, `flashsale_purchases_total{outcome="unknown",variant="atomic"} 1`,
		`flashsale_purchases_total{outcome="unknown",variant="unknown"} 1`, `flashsale_settled_total{outcome="rejected",variant="unknown"} 1`)
	if strings.Contains(text, "made up") {
		t.Errorf("there is a series of it:\n%s", flashsaleLines(text))
	}
}

type settlerFunc func() ([]stock.Verdict, error)

func (f settlerFunc) Settle(context.Context, []stock.Event) ([]stock.Verdict, error) { return f() }

func TestSettler(t *testing.T) {
	m := New([]string{"atomic", "none"})
	verdicts := []stock.Verdict{stock.VerdictPersisted, stock.VerdictRejected, stock.VerdictKnown, stock.VerdictPersisted}
	errs := []error{errors.New("rolled back"), nil}
	s := m.Settler(settlerFunc(func() ([]stock.Verdict, error) {
		err := errs[0]
		errs = errs[1:]
		if err != nil {
			return nil, err
		}
		return verdicts, nil
	}))
	wants(t, scrape(t, m), `flashsale_settled_total{outcome="rejected",variant="none"} 0`) // before the first one
	events := []stock.Event{{Variant: "atomic"}, {Variant: "none"}, {Variant: "none"}, {Variant: "none"}}
	if _, err := s.Settle(t.Context(), events); err == nil {
		t.Error("the failure was swallowed")
	}
	if got, err := s.Settle(t.Context(), events); err != nil || !slices.Equal(got, verdicts) {
		t.Errorf("got %v, %v", got, err)
	}
	wants(t, scrape(t, m), `flashsale_settled_total{outcome="persisted",variant="atomic"} 1`, `flashsale_settled_total{outcome="persisted",variant="none"} 1`,
		`flashsale_settled_total{outcome="rejected",variant="none"} 1`, `flashsale_settled_total{outcome="known",variant="none"} 1`)
}

type fakeLocker struct{ acquireErr, releaseErr error }

func (f fakeLocker) Acquire(_ context.Context, key string) (lock.Lease, error) {
	if f.acquireErr != nil {
		return nil, f.acquireErr
	}
	return fakeLease{f}, nil
}

type fakeLease struct{ fakeLocker }

func (fakeLease) Key() string                     { return "secret" }
func (fakeLease) Fence() uint64                   { return 0 }
func (fakeLease) Lost() <-chan struct{}           { return nil }
func (l fakeLease) Release(context.Context) error { return l.releaseErr }

func TestLocks(t *testing.T) {
	m := New(nil)
	locks := m.Locks(slog.New(slog.DiscardHandler))
	locks.Observe("quiet", fakeLocker{})
	wants(t, scrape(t, m), `flashsale_lock_acquisitions_total{outcome="failed",variant="quiet"} 0`, `flashsale_release_failures_total{variant="quiet"} 0`,
		`flashsale_lock_lost_total{variant="quiet"} 0`, `flashsale_lock_wait_seconds_count{variant="quiet"} 0`) // before the first purchase
	for _, l := range []fakeLocker{{}, {acquireErr: lock.ErrNotAcquired}, {acquireErr: lock.ErrUnavailable}, {acquireErr: context.Canceled}, {acquireErr: errors.New("a fault")}, {releaseErr: lock.ErrUnavailable}, {releaseErr: lock.ErrLost}} {
		_ = lock.Do(t.Context(), locks.Observe("setnx", l), "secret", func(context.Context, lock.Lease) error { return nil })
	}
	text := scrape(t, m)
	wants(t, text, `flashsale_lock_acquisitions_total{outcome="acquired",variant="setnx"} 3`, `flashsale_lock_acquisitions_total{outcome="not_acquired",variant="setnx"} 1`,
		`flashsale_lock_acquisitions_total{outcome="unavailable",variant="setnx"} 1`, `flashsale_lock_acquisitions_total{outcome="cancelled",variant="setnx"} 1`,
		`flashsale_lock_acquisitions_total{outcome="failed",variant="setnx"} 1`,
		`flashsale_release_failures_total{variant="setnx"} 1`, `flashsale_lock_lost_total{variant="setnx"} 1`,
		`flashsale_lock_wait_seconds_count{variant="setnx"} 7`, `flashsale_lock_hold_seconds_count{variant="setnx"} 3`)
	if strings.Contains(text, "secret") {
		t.Error("a key is a label")
	}
}

type fakeOutbox struct {
	stock.Outbox
	err error
}

func (f fakeOutbox) Depth(_ context.Context, shard int) (int64, time.Time, error) {
	if shard == 0 {
		return 0, time.Time{}, f.err
	}
	return int64(shard), time.Now().Add(-time.Duration(shard) * time.Hour), f.err
}

func TestBacklogs(t *testing.T) {
	m := New(nil)
	m.Outbox(fakeOutbox{}, 3)
	m.Lag(func(context.Context) (int64, error) { return 42, nil })
	m.Batches()(5, 2)
	text := scrape(t, m)
	wants(t, text, "flashsale_outbox_entries 3", "flashsale_syncer_lag 42",
		"flashsale_syncer_batch_size_sum 5", "flashsale_syncer_batch_size_count 1", "flashsale_dead_letters_total 2")
	if !strings.Contains(text, "flashsale_relay_oldest_seconds 7200.") {
		t.Errorf("the oldest is two hours old:\n%s", flashsaleLines(text))
	}
}

// A server that is away has no backlog of zero.
func TestBacklogUnknownIsLeftOut(t *testing.T) {
	m := New(nil)
	m.Outbox(fakeOutbox{err: stock.ErrUnavailable}, 3)
	m.Lag(func(context.Context) (int64, error) { return 0, stock.ErrUnavailable })
	withoutBacklogs(t, scrape(t, m))
}

func withoutBacklogs(t *testing.T, text string) {
	t.Helper()
	for _, name := range []string{"flashsale_outbox_entries", "flashsale_relay_oldest_seconds", "flashsale_syncer_lag"} {
		if strings.Contains(text, name) {
			t.Errorf("%s is there:\n%s", name, flashsaleLines(text))
		}
	}
}
