package stock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// slowSales answers after a second, and counts.
type slowSales struct {
	mu    sync.Mutex
	reads int
	err   error
}

func (s *slowSales) Snapshot(ctx context.Context, saleID string) (Snapshot, error) {
	s.mu.Lock()
	s.reads++
	err := s.err
	s.mu.Unlock()
	select {
	case <-time.After(time.Second):
		return Snapshot{Sale: Sale{ID: saleID}}, err
	case <-ctx.Done():
		return Snapshot{}, ctx.Err()
	}
}

func TestTermsAreReadOnceForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sales := &slowSales{}
		terms := newTermsCache(sales, time.Now)
		impatient, cancel := context.WithCancel(t.Context())
		go terms.get(impatient, "sale") // the first to ask, and the first to leave
		synctest.Wait()
		var waiting sync.WaitGroup
		for range 50 {
			waiting.Go(func() {
				if sale, err := terms.get(t.Context(), "sale"); sale.ID != "sale" || err != nil {
					t.Errorf("sale is %+v, %v", sale, err)
				}
			})
		}
		cancel()
		waiting.Wait()
		time.Sleep(termsLifetime - time.Nanosecond)
		terms.get(t.Context(), "sale")
		if sales.reads != 1 {
			t.Errorf("%d reads, want 1", sales.reads)
		}
		time.Sleep(time.Nanosecond)
		terms.get(t.Context(), "sale")
		if sales.reads != 2 {
			t.Errorf("%d reads after the lifetime, want 2", sales.reads)
		}
	})
}

func TestTermsThatCouldNotBeReadAreReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sales := &slowSales{err: ErrSaleNotFound}
		terms := newTermsCache(sales, time.Now)
		if _, err := terms.get(t.Context(), "sale"); !errors.Is(err, ErrSaleNotFound) {
			t.Errorf("error is %v", err)
		}
		sales.err = nil
		if sale, err := terms.get(t.Context(), "sale"); err != nil || sale.ID != "sale" {
			t.Errorf("sale is %+v, %v", sale, err)
		}
	})
}

func TestTermsWaitNoLongerThanTheCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		terms := newTermsCache(&slowSales{}, time.Now)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := terms.get(ctx, "sale"); !errors.Is(err, ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error is %v", err)
		}
		time.Sleep(time.Second) // the read goes on, for the next caller
		synctest.Wait()
		if sale, err := terms.get(t.Context(), "sale"); err != nil || sale.ID != "sale" {
			t.Errorf("sale is %+v, %v", sale, err)
		}
	})
}

func TestTermsStayBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		terms := newTermsCache(&slowSales{}, time.Now)
		var askers sync.WaitGroup
		for n := range 2 * termsMax {
			askers.Go(func() {
				id := fmt.Sprint("sale-", n)
				if sale, err := terms.get(t.Context(), id); err != nil || sale.ID != id {
					t.Errorf("sale is %+v, %v", sale, err)
				}
			})
		}
		askers.Wait()
		if n := len(terms.entries); n > termsMax {
			t.Errorf("%d entries, want at most %d", n, termsMax)
		}
	})
}
