package redislock

import (
	"slices"
	"sync"
	"testing"
	"time"

	"flashsale/internal/lock"
)

// BenchmarkLock measures acquire-and-release cycles on a real Redis, alone and
// with 64 contenders for one key.
func BenchmarkLock(b *testing.B) {
	client := connect(b, realRedis(b))
	setNX, err := NewSetNX(client, Options{Wait: time.Minute})
	if err != nil {
		b.Fatal(err)
	}
	watchdog, err := NewWatchdog(client, Options{Wait: time.Minute})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { watchdog.Close() })

	variants := []struct {
		name   string
		locker lock.Locker
	}{{"setnx", setNX}, {"watchdog", watchdog}}
	for _, v := range variants {
		b.Run(v.name+"/alone", func(b *testing.B) { cycles(b, v.locker, 1) })
		b.Run(v.name+"/64-contenders", func(b *testing.B) { cycles(b, v.locker, 64) })
	}
}

func cycles(b *testing.B, locker lock.Locker, contenders int) {
	b.ReportAllocs()
	waits := make([][]time.Duration, contenders)
	left := make(chan struct{}, b.N)
	for range b.N {
		left <- struct{}{}
	}
	close(left)
	b.ResetTimer()

	var all sync.WaitGroup
	for i := range contenders {
		all.Go(func() {
			for range left {
				start := time.Now()
				lease, err := locker.Acquire(b.Context(), "item")
				waits[i] = append(waits[i], time.Since(start))
				if err != nil {
					b.Error(err)
					return
				}
				if err := lease.Release(b.Context()); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	b.StopTimer()

	sorted := slices.Sorted(slices.Values(slices.Concat(waits...)))
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "cycles/s")
	b.ReportMetric(sorted[len(sorted)*99/100].Seconds()*1e3, "p99-wait-ms")
}
