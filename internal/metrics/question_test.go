package metrics

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A server that hangs, behind a client that does not heed its context, costs a
// scrape its metrics and two seconds; scrapes that follow pile nothing up.
func TestScrapeOfServersThatHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New(nil)
		var asked atomic.Int32
		back := make(chan struct{})
		m.Lag(func(context.Context) (int64, error) {
			asked.Add(1)
			<-back
			return 7, nil
		})
		m.Batches()(5, 0)
		for range 3 {
			began := time.Now()
			var scrapes sync.WaitGroup
			for range 4 {
				scrapes.Go(func() {
					text := scrape(t, m)
					withoutBacklogs(t, text)
					wants(t, text, "flashsale_syncer_batch_size_count 1")
				})
			}
			scrapes.Wait()
			if took := time.Since(began); took != scrapeTimeout {
				t.Errorf("took %v", took)
			}
		}
		if n := asked.Load(); n != 1 {
			t.Errorf("asked %d times at once", n)
		}
		close(back)
		synctest.Wait()
		wants(t, scrape(t, m), "flashsale_syncer_lag 7")
		if n := asked.Load(); n != 2 {
			t.Errorf("asked %d times", n)
		}
	})
}

// A client that does heed it is given up in time, and asked again at the next scrape.
func TestServersAreAskedWithATimeLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, asked := New(nil), 0
		m.Lag(func(ctx context.Context) (int64, error) {
			asked++
			<-ctx.Done()
			return 0, ctx.Err()
		})
		for range 2 {
			withoutBacklogs(t, scrape(t, m))
			synctest.Wait()
		}
		if asked != 2 {
			t.Errorf("asked %d times", asked)
		}
	})
}
