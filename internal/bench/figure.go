package bench

import (
	"fmt"
	"slices"
)

// Figure is what several runs came to: the middle one, and how far they were
// apart. Of an even number of runs the median is the mean of the middle two.
type Figure struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// figure is nil when there is nothing to take the median of.
func figure(values []float64) *Figure {
	if len(values) == 0 {
		return nil
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return &Figure{
		Median: round3((sorted[(n-1)/2] + sorted[n/2]) / 2),
		Min:    sorted[0],
		Max:    sorted[n-1],
	}
}

// text shows the median and, if the runs differ, the range.
func (f *Figure) text(show func(float64) string) string {
	switch {
	case f == nil:
		return "-"
	case show(f.Min) == show(f.Max):
		return show(f.Median)
	default:
		return fmt.Sprintf("%s (%s-%s)", show(f.Median), show(f.Min), show(f.Max))
	}
}

func whole(x float64) string { return Thousands(int64(x + 0.5)) }

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

// percent shows a figure of shares.
func (f *Figure) percent() string {
	if f == nil {
		return "-"
	}
	return f.text(func(share float64) string { return fmt.Sprintf("%.1f", 100*share) }) + " %"
}

func ratio(x float64) string { return fmt.Sprintf("%.2f", x) }
