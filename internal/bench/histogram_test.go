package bench

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestQuantilesAreNearTheExactOnes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, size := range []int{1, 2, 3, 99, 100, 101, 5000} {
		var h histogram
		exact := make([]time.Duration, size)
		for i := range exact {
			exact[i] = time.Duration(math.Exp(random.Float64() * 25)) // 1 ns to 72 s
			h.record(exact[i])
		}
		slices.Sort(exact)
		for _, q := range []float64{0.001, 0.5, 0.95, 0.99, 1} {
			want := exact[max(1, int(math.Ceil(q*float64(size))))-1]
			got := h.quantile(q)
			if got < want || float64(got) > float64(want)*1.008+1 {
				t.Errorf("%d samples, quantile %v: %v, exactly %v", size, q, got, want)
			}
		}
	}
}

func TestHistogramEdges(t *testing.T) {
	var h histogram
	if !h.empty() || h.quantile(0.99) != 0 {
		t.Error("an empty histogram has a quantile")
	}
	h.record(-time.Second)
	h.record(math.MaxInt64)
	if h.empty() || h.quantile(0.5) != 0 || h.quantile(1) != math.MaxInt64 {
		t.Errorf("quantiles %v, %v", h.quantile(0.5), h.quantile(1))
	}
	for _, v := range []uint64{0, 1, 127, 128, 255, 256, 257, 511, 512, math.MaxUint64} {
		i := bucket(v)
		if i >= buckets || upper(i) < v || i > 0 && upper(i-1) >= v {
			t.Errorf("%d is in bucket %d, which ends at %d", v, i, upper(i))
		}
	}
}
