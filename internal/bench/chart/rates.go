package chart

import (
	"cmp"
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
		x: emptyAxis("arrivals/s offered"), y: emptyAxis("P99 ms, median and range")}
	var legend []entry
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
		legend = append(legend, entry{text: variant, style: style, dot: true})
	}
	if f.x.empty() {
		return Chart{}, false
	}
	f.x.min, f.x.max = 0, f.x.max*1.03
	f.x.even()
	f.y.powers()
	return Chart{Name: "p99-by-rate", Title: f.title, width: 640, height: 340, draw: f.beside(legend, 130)}, true
}

// p99s draws a variant's points in the order of their rates.
func p99s(c draw.Canvas, at func(x, y float64) vg.Point, points []bench.Summary, style draw.LineStyle) {
	ranges := thin(style.Color)
	remark := words(8)
	remark.XAlign, remark.YAlign = draw.XRight, draw.YBottom // a curve that runs away comes from below
	var curve []vg.Point
	for _, s := range points {
		p99 := s.AcceptedLatency.P99
		p := at(s.Rate, finite(p99.Median))
		curve = append(curve, p)
		whisker(c, ranges, at(s.Rate, finite(p99.Min)), at(s.Rate, finite(p99.Max)))
		dot(c, style, p)
		c.FillText(remark, vg.Point{X: p.X - 5, Y: p.Y + 5}, dropped(s))
	}
	c.StrokeLines(style, curve)
}
