package chart

import (
	"fmt"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"flashsale/internal/bench"
)

// bar is a median with its range.
type bar struct {
	name   string
	figure bench.Figure
	label  string
}

// oversell has two panels with a line for each variant: how much of what it sold
// was oversold, and how fast it sold.
func oversell(r *bench.Report) (Chart, bool) {
	const title = "Oversell beside goodput"
	order := bench.Measured(r.Summaries)
	if len(order) == 0 {
		return Chart{}, false
	}
	// With neither a race nor an end of the stock nothing can be oversold, and
	// zeros would be no praise.
	endless := r.Parameters.RaceUsers == 0 && r.Parameters.Stock == 0
	heading := "Oversell: % of units sold"
	if endless {
		heading = "Lost updates: % of units sold (no race was made)"
	}
	left, right := make([]bar, len(order)), make([]bar, len(order))
	for i, variant := range order {
		left[i].name, right[i].name = variant, variant
		for _, s := range r.Summaries {
			if s.Variant != variant || s.Skipped != nil {
				continue
			}
			f := *s.OversellRate
			if endless {
				f = *s.LostShare
			}
			if 100*f.Median >= left[i].figure.Median { // of several loads the worst
				left[i].figure = bench.Figure{Median: 100 * f.Median, Min: 100 * f.Min, Max: 100 * f.Max}
			}
			if f := *s.AcceptedPerS; s.Model != bench.ModelRace && f.Median >= right[i].figure.Median { // and the best
				right[i].figure = f
			}
		}
		left[i].label = fmt.Sprintf("%.1f %%", left[i].figure.Median)
		right[i].label = bench.Thousands(int64(right[i].figure.Median + 0.5))
	}
	a := bars(heading, "%"+ofRuns(r, "median and range"), left, orange)
	b := bars("Goodput: accepted/s"+bestOf(r), "accepted/s"+ofRuns(r, "median and range"), right, blue)
	a.x.max = max(a.x.max, 10)
	a.x.even()
	height := vg.Length(90 + 26*len(order))
	return Chart{Name: "oversell", Title: title, width: 760, height: height, draw: func(c draw.Canvas) {
		blank(c)
		tiles := draw.Tiles{Rows: 1, Cols: 2, PadX: 14, PadTop: 6, PadBottom: 6, PadLeft: 6, PadRight: 10}
		a.draw(tiles.At(c, 0, 0))
		b.draw(tiles.At(c, 1, 0))
	}}, true
}

func bestOf(r *bench.Report) string {
	if len(bench.Loads(r.Summaries)) > 1 {
		return ", best of the loads"
	}
	return ""
}

// bars is a frame of horizontal bars, the first one on top.
func bars(title, label string, list []bar, colour int) *frame {
	n := len(list)
	f := &frame{title: title, x: axis{label: label}, y: axis{min: -0.6, max: float64(n) - 0.4}}
	for i, b := range list {
		y := float64(n - 1 - i)
		f.y.ticks = append(f.y.ticks, tick{y, b.name})
		f.x.max = max(f.x.max, b.figure.Max)
		f.marks = append(f.marks, func(c draw.Canvas, at func(x, y float64) vg.Point) {
			const half = 6.5
			from, to := at(0, y), at(b.figure.Median, y)
			c.FillPolygon(colours[colour], []vg.Point{{X: from.X, Y: from.Y - half}, {X: to.X, Y: to.Y - half}, {X: to.X, Y: to.Y + half}, {X: from.X, Y: from.Y + half}})
			whisker(c, thin(black), at(b.figure.Min, y), at(b.figure.Max, y))
			c.FillText(centred(9), vg.Point{X: at(b.figure.Max, y).X + 2*gap, Y: to.Y}, b.label)
		})
	}
	f.x.max = max(1, f.x.max*1.25)
	f.x.even()
	return f
}
