package bench

import (
	"math"
	"math/bits"
	"sync/atomic"
	"time"
)

const (
	subBits    = 7 // 128 buckets for each power of two: quantiles are at most 0.8 % off
	subBuckets = 1 << subBits
	buckets    = (64 - subBits + 1) * subBuckets
)

// histogram counts durations in log-linear buckets. Its size doesn't grow with
// what is recorded, and any number of goroutines may record at once.
type histogram struct {
	counts [buckets]atomic.Int64
	total  atomic.Int64
	max    atomic.Int64
}

func (h *histogram) record(d time.Duration) {
	ns := max(0, int64(d))
	h.counts[bucket(uint64(ns))].Add(1)
	h.total.Add(1)
	atLeast(&h.max, ns)
}

// add counts what other has counted. It is not atomic as a whole.
func (h *histogram) add(other *histogram) {
	for i := range other.counts {
		if n := other.counts[i].Load(); n > 0 {
			h.counts[i].Add(n)
		}
	}
	h.total.Add(other.total.Load())
	atLeast(&h.max, other.max.Load())
}

// p99 is in milliseconds, nil when nothing was recorded.
func (h *histogram) p99() *float64 {
	if h.empty() {
		return nil
	}
	p := ms(h.quantile(0.99))
	return &p
}

// quantile is the nearest-rank quantile, 0 < q <= 1; zero when nothing was
// recorded.
func (h *histogram) quantile(q float64) time.Duration {
	rank := max(1, int64(math.Ceil(q*float64(h.total.Load()))))
	var seen int64
	for i := range h.counts {
		seen += h.counts[i].Load()
		if seen >= rank {
			return time.Duration(min(upper(i), uint64(h.max.Load())))
		}
	}
	return time.Duration(h.max.Load())
}

func (h *histogram) empty() bool { return h.total.Load() == 0 }

// bucket: values below subBuckets have a bucket each, the others share one with
// those that have the same leading subBits+1 bits.
func bucket(v uint64) int {
	shift := bits.Len64(v) - subBits - 1
	if shift <= 0 {
		return int(v)
	}
	return shift*subBuckets + int(v>>shift)
}

// upper is the largest value of bucket i.
func upper(i int) uint64 {
	if i < 2*subBuckets {
		return uint64(i)
	}
	shift := i/subBuckets - 1
	return (uint64(i-shift*subBuckets)+1)<<shift - 1
}
