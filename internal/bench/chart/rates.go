package chart

import (
	"cmp"
	"image/color"
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
	var left remarks
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
		for _, s := range points {
			if text := dropped(s); text != "" {
				left = append(left, remark{s.Rate, finite(s.AcceptedLatency.P99.Median), text, style.Color})
			}
		}
		legend = append(legend, entry{text: variant, style: style, dot: true})
	}
	f.marks = append(f.marks, left.draw) // above the curves
	if f.x.empty() {
		return Chart{}, false
	}
	f.x.min, f.x.max = 0, f.x.max*1.03
	f.x.even()
	f.y.powers()
	return Chart{Name: "p99-by-rate", Title: f.title, width: 640, height: 340, draw: f.beside(legend)}, true
}

// p99s draws a variant's points in the order of their rates.
func p99s(c draw.Canvas, at func(x, y float64) vg.Point, points []bench.Summary, style draw.LineStyle) {
	ranges := thin(style.Color)
	var curve []vg.Point
	for _, s := range points {
		p99 := s.AcceptedLatency.P99
		p := at(s.Rate, finite(p99.Median))
		curve = append(curve, p)
		whisker(c, ranges, at(s.Rate, finite(p99.Min)), at(s.Rate, finite(p99.Max)))
		dot(c, style, p)
	}
	c.StrokeLines(style, curve)
}

// remark is a word on a point.
type remark struct {
	rate, p99 float64
	text      string
	color     color.Color // of its curve
}

type remarks []remark

// draw puts each to the upper left of its point, as a curve that runs away comes
// from below, and above those that are there already; on white, so that it can be
// read where curves cross it.
func (list remarks) draw(c draw.Canvas, at func(x, y float64) vg.Point) {
	style := words(8)
	style.XAlign, style.YAlign = draw.XRight, draw.YBottom
	slices.SortFunc(list, func(a, b remark) int { return cmp.Compare(a.p99, b.p99) })
	var taken []vg.Rectangle
	for _, r := range list {
		corner := at(r.rate, r.p99).Add(vg.Point{X: -5, Y: 3})
		room := vg.Rectangle{Min: vg.Point{X: corner.X - style.Width(r.text) - 1, Y: corner.Y}, Max: vg.Point{X: corner.X + 1, Y: corner.Y + 10}}
		for _, other := range taken { // from below
			if room.Min.X < other.Max.X && other.Min.X < room.Max.X && room.Min.Y < other.Max.Y && other.Min.Y < room.Max.Y {
				room = room.Add(vg.Point{Y: other.Max.Y - room.Min.Y})
			}
		}
		taken = append(taken, room)
		c.SetColor(white)
		c.Fill(room.Path())
		style.Color = darker(r.color)
		c.FillText(style, vg.Point{X: room.Max.X - 1, Y: room.Min.Y + 1}, r.text)
	}
}
