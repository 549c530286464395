package redisstock

import (
	"testing"

	"flashsale/internal/stock/stocktest"
)

func TestCounters(t *testing.T) {
	for name, counter := range counters {
		for server, newRig := range rigs(counter) {
			t.Run(name+"/"+server, func(t *testing.T) { stocktest.CounterSuite(t, newRig) })
		}
	}
}

func TestAtomicNeedsNoLock(t *testing.T) {
	for server, newRig := range rigs(counters["atomic"]) {
		t.Run(server, func(t *testing.T) { stocktest.CounterRace(t, newRig) })
	}
}

func TestOutbox(t *testing.T) {
	for server, newRig := range rigs(counters["atomic"]) {
		t.Run(server, func(t *testing.T) { stocktest.OutboxSuite(t, newRig) })
	}
}
