package chart

import (
	"cmp"
	"fmt"
	"slices"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"flashsale/internal/bench"
)

// rates shows at which offered rate a variant's P99 runs away. The other
// percentiles stand in the report.
func rates(r *bench.Report) (Chart, bool) {
	if len(r.Parameters.Rates) < 2 {
		return Chart{}, false
	}
	f := frame{title: "P99 of accepted purchases against the offered rate", grid: true,
		x: emptyAxis("arrivals/s offered"), y: emptyAxis("P99 in ms" + ofRuns(r, "median and range"))}
	var legend []entry
	dropping := false
	for i, variant := range bench.Measured(r.Summaries) {
		var points []bench.Summary
		for _, s := range r.Summaries {
			if s.Variant == variant && s.Model == bench.ModelOpen && s.AcceptedLatency.P99 != nil {
				points = append(points, s)
				f.x.note(s.Rate)
				f.y.note(finite(s.AcceptedLatency.P99.Min))
				f.y.note(finite(s.AcceptedLatency.P99.Max))
			}
		}
		if len(points) == 0 {
			continue
		}
		slices.SortFunc(points, func(a, b bench.Summary) int { return cmp.Compare(a.Rate, b.Rate) })
		style := line(i)
		f.marks = append(f.marks, func(c draw.Canvas, at func(x, y float64) vg.Point) { p99s(c, at, points, style) })
		text, worst := variant, 0.0
		for _, s := range points {
			if s.DroppedShare != nil {
				worst = max(worst, s.DroppedShare.Median)
			}
		}
		if worst > 0 {
			text += fmt.Sprintf(" (up to %.0f %% dropped)", 100*worst)
			dropping = true
		}
		legend = append(legend, entry{text: text, style: style, dot: dot})
	}
	if dropping {
		legend = append(legend, entry{text: "buyers were dropped", style: draw.LineStyle{Color: black}, dot: hollow})
	}
	if f.x.empty() {
		return Chart{}, false
	}
	f.x.min, f.x.max = 0, f.x.max*1.03
	f.x.even()
	f.y.powers()
	return Chart{Name: "p99-by-rate", Title: f.title, width: 700, height: 340, draw: f.beside(legend)}, true
}

// p99s draws a variant's points in the order of their rates.
func p99s(c draw.Canvas, at func(x, y float64) vg.Point, points []bench.Summary, style draw.LineStyle) {
	var curve []vg.Point
	for _, s := range points {
		p99 := s.AcceptedLatency.P99
		curve = append(curve, at(s.Rate, finite(p99.Median)))
		whisker(c, thin(style.Color), at(s.Rate, finite(p99.Min)), at(s.Rate, finite(p99.Max)))
	}
	c.StrokeLines(style, curve)
	for i, s := range points {
		if dropped(s) != "" { // its P99 is that of the others
			hollow(c, style, curve[i])
		} else {
			dot(c, style, curve[i])
		}
	}
}
