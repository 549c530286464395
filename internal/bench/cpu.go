package bench

import (
	"runtime"
	"time"
)

// cpuTime is what this process has used of its processors, in all its threads.
type cpuTime struct {
	used  time.Duration
	known bool
}

// shareSince is what was used since t was read, between start and end, as a
// share of all processors of the machine.
func (t cpuTime) shareSince(start, end time.Time) *float64 {
	now, wall := readCPU(), end.Sub(start)
	if !t.known || !now.known || wall <= 0 {
		return nil
	}
	share := round3(min(1, float64(now.used-t.used)/float64(wall)/float64(runtime.NumCPU())))
	return &share
}
