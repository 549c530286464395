package chart

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"flashsale/internal/bench"
)

// latency is by percentile, each further nine having the same room, so that the
// tail is not squeezed into the margin.
func latency(r *bench.Report, load bench.Load, name string) (Chart, bool) {
	f := frame{title: fmt.Sprintf("Latency of accepted purchases, %s model, %s", load.Model(), load), grid: true,
		x: emptyAxis("percentile"), y: emptyAxis("latency in ms" + ofRuns(r, "median"))}
	var legend []entry
	order := bench.Measured(r.Summaries)
	for _, s := range r.Summaries {
		if s.Model == bench.ModelRace || s.Users != load.Users || s.Rate != load.Rate || len(s.AcceptedLatency.Curve) < 2 {
			continue
		}
		style := line(slices.Index(order, s.Variant))
		for _, p := range s.AcceptedLatency.Curve {
			f.x.note(nines(p.Percentile))
			f.y.note(finite(p.Ms.Median))
		}
		f.marks = append(f.marks, func(c draw.Canvas, at func(x, y float64) vg.Point) {
			var curve []vg.Point
			for _, p := range s.AcceptedLatency.Curve {
				curve = append(curve, at(nines(p.Percentile), finite(p.Ms.Median)))
			}
			c.StrokeLines(style, curve)
		})
		legend = append(legend, entry{text: strings.TrimSpace(s.Variant + " " + dropped(s)), style: style})
	}
	if f.x.empty() {
		return Chart{}, false
	}
	f.x.min, f.x.ticks = 0, nineTicks()
	for _, t := range f.x.ticks { // to a percentile that is named
		if t.at >= f.x.max {
			f.x.max = t.at
			break
		}
	}
	f.y.powers()
	return Chart{Name: name, Title: f.title, width: 700, height: 340, draw: f.beside(legend)}, true
}

// ofRuns says what a figure is of several runs; one run needs no word.
func ofRuns(r *bench.Report, what string) string {
	if r.Parameters.Runs == 1 {
		return ""
	}
	return ", " + what + " of the runs"
}

// dropped says how many buyers a percentile leaves out; empty: none.
func dropped(s bench.Summary) string {
	if s.DroppedShare == nil || s.DroppedShare.Median == 0 {
		return ""
	}
	return fmt.Sprintf("(%.0f %% dropped)", 100*s.DroppedShare.Median)
}

// nines is 1 for 90 %, 2 for 99 %, and so on.
func nines(percentile float64) float64 { return -math.Log10(1 - percentile/100) }

func nineTicks() (ticks []tick) {
	for _, percentile := range []float64{0, 50, 75, 90, 95, 99, 99.5, 99.9, 99.95, 99.99} {
		ticks = append(ticks, tick{nines(percentile), inWords(percentile)})
	}
	return ticks
}

// powers makes an axis of positive values logarithmic, from 1, 2 or 5 of a power
// of ten to another.
func (a *axis) powers() {
	low, high := finite(a.min), finite(a.max)
	a.min, a.max, a.ticks = math.Inf(-1), math.Inf(1), nil
	for exponent := -3; exponent <= 7; exponent++ {
		for _, digit := range []float64{1, 2, 5} {
			at := digit * math.Pow10(exponent)
			if at <= low {
				a.min = math.Max(a.min, at)
			}
			if at >= high {
				a.max = math.Min(a.max, at)
			}
			a.ticks = append(a.ticks, tick{at, inWords(at)})
		}
	}
	a.min, a.max, a.logarithmic = finite(a.min), math.Max(a.max, finite(a.min)*10), true
}

// finite is x, at least the least that a logarithmic axis shows.
func finite(x float64) float64 { return math.Max(x, 0.001) }
