package stocktest_test

import (
	"sync/atomic"
	"testing"
	"time"

	"flashsale/internal/stock"
	"flashsale/internal/stock/stocktest"
)

func newRig(*testing.T) stocktest.Rig {
	var lose atomic.Bool
	var now atomic.Pointer[time.Time]
	memory := &stocktest.Memory{
		Now: func() time.Time {
			if at := now.Load(); at != nil {
				return *at
			}
			return time.Now()
		},
		Hook: func(op string) (bool, error) {
			if op == stocktest.OpDeduct && lose.Load() {
				return true, stock.ErrOutcomeUnknown
			}
			return true, nil
		},
	}
	return stocktest.Rig{
		Counter: memory, Desk: memory, Outbox: memory,
		LoseAnswers: lose.Store,
		SetClock:    func(at time.Time) { now.Store(&at) },
	}
}

func TestMemoryCounter(t *testing.T) { stocktest.CounterSuite(t, newRig) }
func TestMemoryRace(t *testing.T)    { stocktest.CounterRace(t, newRig) }
func TestMemoryOutbox(t *testing.T)  { stocktest.OutboxSuite(t, newRig) }
