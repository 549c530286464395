package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"
	"time"
)

// figure is a lock in a scene: the medians of its rounds.
type figure struct {
	Scene           string     `json:"scene"`
	Lock            string     `json:"lock"`
	Peer            bool       `json:"peer"`
	CyclesPerSecond float64    `json:"cycles_per_second"`
	Range           [2]float64 `json:"cycles_per_second_range"`
	WaitP50         float64    `json:"wait_p50_ms"`
	WaitP99         float64    `json:"wait_p99_ms"`
	WaitMax         float64    `json:"wait_max_ms"` // of all rounds
	Stuck           uint64     `json:"stuck"`       // in all rounds
	Settings        string     `json:"settings"`
}

func summarize(s scene, l contestant, rounds []measurement) figure {
	of := func(value func(measurement) float64) []float64 {
		var all []float64
		for _, m := range rounds {
			all = append(all, value(m))
		}
		return slices.Sorted(slices.Values(all))
	}
	ms := func(d time.Duration) float64 { return d.Seconds() * 1e3 }
	var stuck uint64
	for _, m := range rounds {
		stuck += m.stuck
	}
	perSecond := of(func(m measurement) float64 { return m.perSecond })
	return figure{
		Scene: s.name, Lock: l.name, Peer: l.peer, Settings: l.settings, Stuck: stuck,
		CyclesPerSecond: median(perSecond),
		Range:           [2]float64{perSecond[0], perSecond[len(perSecond)-1]},
		WaitP50:         median(of(func(m measurement) float64 { return ms(m.p50) })),
		WaitP99:         median(of(func(m measurement) float64 { return ms(m.p99) })),
		WaitMax:         slices.Max(of(func(m measurement) float64 { return ms(m.max) })),
	}
}

func median(sorted []float64) float64 {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// result is a whole run.
type result struct {
	Redis, Go string
	CPUs      int
	Window    time.Duration
	Rounds    int
	Figures   []figure
}

const flagship = "watchdog"

// compared are the ratios of watchdog to the best peer in a scene.
type compared struct {
	cycles, p99         float64
	byCycles, byP99     string  // who is the best peer
	bestCycles, bestP99 float64 // and with how many
}

func (r *result) compare(scene string) compared {
	var mine figure
	c := compared{bestP99: math.Inf(1)}
	for _, f := range r.Figures {
		switch {
		case f.Scene != scene:
		case f.Lock == flagship:
			mine = f
		case f.Peer:
			if f.CyclesPerSecond > c.bestCycles {
				c.bestCycles, c.byCycles = f.CyclesPerSecond, f.Lock
			}
			if f.WaitP99 < c.bestP99 {
				c.bestP99, c.byP99 = f.WaitP99, f.Lock
			}
		}
	}
	c.cycles, c.p99 = mine.CyclesPerSecond/c.bestCycles, mine.WaitP99/c.bestP99
	return c
}

// writeJSON writes one object. The keys are fixed.
func (r *result) writeJSON(w io.Writer) error {
	contended, three, own := r.compare("contended"), r.compare("three_process"), r.compare(ownKey)
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(struct {
		ContendedCycles float64 `json:"contended_cycles_ratio"`
		ContendedP99    float64 `json:"contended_p99_wait_ratio"`
		OwnKeyCycles    float64 `json:"own_key_cycles_ratio"`
		ThreeCycles     float64 `json:"three_process_cycles_ratio"`
		ThreeP99        float64 `json:"three_process_p99_wait_ratio"`

		Redis   string   `json:"redis"`
		Go      string   `json:"go"`
		CPUs    int      `json:"cpus"`
		Window  float64  `json:"window_s"`
		Rounds  int      `json:"rounds"`
		Figures []figure `json:"figures"`
	}{
		contended.cycles, contended.p99, own.cycles, three.cycles, three.p99,
		r.Redis, r.Go, r.CPUs, r.Window.Seconds(), r.Rounds, r.Figures,
	})
}

func (r *result) writeTable(w io.Writer) error {
	fmt.Fprintf(w, "redis-server %s, %s, %d CPUs, %v a measurement, medians of %d rounds\n", r.Redis, r.Go, r.CPUs, r.Window, r.Rounds)
	for _, s := range scenes {
		fmt.Fprintf(w, "\n%s\n", s.title)
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(t, "lock\tcycles/s\tfrom - to\twait P50\tP99\tmax\tstuck\t")
		for _, f := range r.Figures {
			if f.Scene != s.name {
				continue
			}
			name := f.Lock
			if f.Peer {
				name += " *"
			}
			fmt.Fprintf(t, "%s\t%.0f\t%.0f - %.0f\t%s\t%s\t%s\t%d\t\n", name, f.CyclesPerSecond, f.Range[0], f.Range[1],
				milliseconds(f.WaitP50), milliseconds(f.WaitP99), milliseconds(f.WaitMax), f.Stuck)
		}
		if err := t.Flush(); err != nil {
			return err
		}
		c := r.compare(s.name)
		fmt.Fprintf(w, "%s / best peer: %.2f times the cycles of %s", flagship, c.cycles, c.byCycles)
		if !s.ownKeys {
			fmt.Fprintf(w, ", %.3f times the P99 wait of %s", c.p99, c.byP99)
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w, "\nStuck are contenders, of all rounds, that still waited for the lock 3 s after the others were told to end.\nSettings (* = peer). Nothing is done while holding but to check, outside of Redis, that nobody else holds.")
	for _, l := range locks {
		fmt.Fprintf(w, "  %-12s %s\n", l.name, l.settings)
	}
	return nil
}

func milliseconds(ms float64) string {
	if ms < 10 {
		return fmt.Sprintf("%.2f ms", ms)
	}
	return fmt.Sprintf("%.0f ms", ms)
}
