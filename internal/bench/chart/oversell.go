package chart

import (
	"fmt"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
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
	a := bars(heading, "%", left, orange)
	b := bars("Goodput: accepted/s"+bestOf(r), "accepted/s", right, blue)
	a.X.Max = max(a.X.Max, 10)
	height := vg.Length(90 + 26*len(order))
	return Chart{Name: "oversell", Title: title, width: 760, height: height, draw: func(c draw.Canvas) {
		tiles := draw.Tiles{Rows: 1, Cols: 2, PadX: 14, PadTop: 6, PadBottom: 6, PadLeft: 6, PadRight: 10}
		plots := [][]*plot.Plot{{a, b}}
		c.SetColor(a.BackgroundColor)
		c.Fill(c.Rectangle.Path())
		for i, canvas := range plot.Align(plots, tiles, c)[0] {
			plots[0][i].Draw(canvas)
		}
	}}, true
}

func bestOf(r *bench.Report) string {
	if len(bench.Loads(r.Summaries)) > 1 {
		return ", best of the loads"
	}
	return ""
}

// bars is a plot of horizontal bars, the first one on top.
func bars(title, unit string, list []bar, colour int) *plot.Plot {
	p := newPlot(title, unit+", median and range", "")
	n := len(list)
	values, names := make(plotter.Values, n), make([]string, n)
	labels := plotter.XYLabels{XYs: make(plotter.XYs, n), Labels: make([]string, n)}
	ranges := rangesX{XYs: make(plotter.XYs, n), errors: make(plotter.XErrors, n)}
	top := 0.0
	for i, b := range list {
		at := n - 1 - i
		values[at], names[at] = b.figure.Median, b.name
		ranges.XYs[at] = plotter.XY{X: b.figure.Median, Y: float64(at)}
		ranges.errors[at].Low, ranges.errors[at].High = b.figure.Median-b.figure.Min, b.figure.Max-b.figure.Median
		labels.XYs[at], labels.Labels[at] = plotter.XY{X: b.figure.Max, Y: float64(at)}, b.label
		top = max(top, b.figure.Max)
	}
	chart, err := plotter.NewBarChart(values, 13)
	must(err)
	chart.Horizontal, chart.Color, chart.LineStyle.Width = true, colours[colour], 0
	whiskers, err := plotter.NewXErrorBars(ranges)
	must(err)
	texts, err := plotter.NewLabels(labels)
	must(err)
	for i := range texts.TextStyle {
		texts.TextStyle[i].Font.Variant, texts.TextStyle[i].Font.Size = "Sans", 9
		texts.TextStyle[i].YAlign = draw.YCenter
	}
	texts.Offset.X = 8
	p.Add(chart, whiskers, texts)
	p.NominalY(names...)
	p.X.Min, p.X.Max = 0, max(1, top*1.25)
	p.Y.Min, p.Y.Max = -0.6, float64(n)-0.4
	return p
}

type rangesX struct {
	plotter.XYs
	errors plotter.XErrors
}

func (r rangesX) XError(i int) (low, high float64) { return r.errors.XError(i) }

// must is for plotters of values that were made here: they refuse only what is
// no number, and nothing that was measured is that.
func must(err error) {
	if err != nil {
		panic("chart: " + err.Error())
	}
}

// finite is x, at least the least that a logarithmic axis shows.
func finite(x float64) float64 { return math.Max(x, 0.001) }
