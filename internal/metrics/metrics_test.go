package metrics

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http/httptest"
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

func TestSeller(t *testing.T) {
	m := New()
	errs := []error{nil, nil, stock.ErrSoldOut, stock.ErrSaleNotFound}
	s := m.Seller(sellerFunc(func() (stock.Receipt, error) {
		err := errs[0]
		errs = errs[1:]
		if errors.Is(err, stock.ErrSaleNotFound) {
			return stock.Receipt{}, err
		}
		return stock.Receipt{Variant: "atomic"}, err
	}), func(err error) string {
		if err == nil {
			return "accepted"
		}
		return "refused"
	})
	for range 4 {
		_, _ = s.Purchase(t.Context(), stock.Request{SaleID: "secret"})
	}
	text := scrape(t, m)
	wants(t, text, `flashsale_purchases_total{outcome="accepted",variant="atomic"} 2`, `flashsale_purchases_total{outcome="refused",variant="atomic"} 1`,
		`flashsale_purchases_total{outcome="refused",variant="unknown"} 1`, `flashsale_purchase_seconds_count{outcome="accepted",variant="atomic"} 2`)
	if strings.Contains(text, "secret") {
		t.Error("a sale is a label")
	}
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
	m := New()
	locks := m.Locks(slog.New(slog.NewTextHandler(io.Discard, nil)))
	for _, l := range []fakeLocker{{}, {acquireErr: lock.ErrNotAcquired}, {releaseErr: lock.ErrUnavailable}, {releaseErr: lock.ErrLost}} {
		_ = lock.Do(t.Context(), locks.Observe("setnx", l), "secret", func(context.Context, lock.Lease) error { return nil })
	}
	text := scrape(t, m)
	wants(t, text, `flashsale_lock_acquisitions_total{outcome="acquired",variant="setnx"} 3`, `flashsale_lock_acquisitions_total{outcome="not_acquired",variant="setnx"} 1`,
		`flashsale_release_failures_total{variant="setnx"} 1`, `flashsale_lock_lost_total{variant="setnx"} 1`,
		`flashsale_lock_wait_seconds_count{variant="setnx"} 4`, `flashsale_lock_hold_seconds_count{variant="setnx"} 3`)
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
	m := New()
	m.Outbox(fakeOutbox{}, 3)
	m.Syncer(func(context.Context) (int64, error) { return 42, nil })(5)
	text := scrape(t, m)
	wants(t, text, "flashsale_outbox_entries 3", "flashsale_syncer_lag 42", "flashsale_syncer_batch_size_sum 5", "flashsale_syncer_batch_size_count 1")
	if !strings.Contains(text, "flashsale_relay_oldest_seconds 7200.") {
		t.Errorf("the oldest is two hours old:\n%s", flashsaleLines(text))
	}
}

// A server that is away has no backlog of zero.
func TestBacklogUnknownIsLeftOut(t *testing.T) {
	m := New()
	m.Outbox(fakeOutbox{err: stock.ErrUnavailable}, 3)
	m.Syncer(func(context.Context) (int64, error) { return 0, stock.ErrUnavailable })
	text := scrape(t, m)
	for _, name := range []string{"flashsale_outbox_entries", "flashsale_relay_oldest_seconds", "flashsale_syncer_lag"} {
		if strings.Contains(text, name) {
			t.Errorf("%s is there:\n%s", name, flashsaleLines(text))
		}
	}
}
