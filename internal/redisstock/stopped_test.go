package redisstock

import (
	"errors"
	"testing"
	"time"

	"flashsale/internal/servers/servertest"
	"flashsale/internal/stock"
)

// TestRedisIsKilled has idle connections to a server that is gone by the time
// they are used: nothing can have happened, and the error says so.
func TestRedisIsKilled(t *testing.T) {
	for name, counter := range counters {
		t.Run(name, func(t *testing.T) {
			server := servertest.RedisServer(t)
			f := newFixture(t, server.Addr(), "")
			sale := testSale(t, f)
			if err := one(t, counter(f.Store), 0, sale, "before", 1).Err; err != nil {
				t.Fatal(err)
			}
			server.Kill()
			for range 3 {
				begun := time.Now()
				err := one(t, counter(f.Store), 0, sale, "ann", 1).Err
				if !errors.Is(err, stock.ErrUnavailable) || errors.Is(err, stock.ErrOutcomeUnknown) {
					t.Errorf("error is %v, want ErrUnavailable", err)
				}
				if took := time.Since(begun); took > 3*time.Second {
					t.Errorf("took %v", took)
				}
			}
			if err := server.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			// The client learns of it by trying.
			deadline := time.Now().Add(20 * time.Second)
			result := one(t, counter(f.Store), 0, sale, "ann", 1)
			for ; errors.Is(result.Err, stock.ErrUnavailable) && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
				result = one(t, counter(f.Store), 0, sale, "ann", 1)
			}
			if result.Err != nil || result.Remaining != 8 {
				t.Errorf("result is %+v", result)
			}
		})
	}
}
