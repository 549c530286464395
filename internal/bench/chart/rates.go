package chart

import (
	"image/color"
	"slices"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"flashsale/internal/bench"
)

var pale = color.Gray{Y: 0xdd}

// rates shows at which offered rate a variant's P99 runs away. The other
// percentiles stand in the report.
func rates(r *bench.Report) (Chart, bool) {
	const title = "P99 of accepted purchases against the offered rate"
	if len(r.Parameters.Rates) < 2 {
		return Chart{}, false
	}
	p, legend := newPlot(title, "arrivals/s offered", "P99 ms, median and range"), newLegend()
	p.Add(grid())
	drawn := false
	for i, variant := range bench.Measured(r.Summaries) {
		var points rangesY
		var marks plotter.XYLabels
		for _, s := range r.Summaries {
			if p99 := s.AcceptedLatency.P99; s.Variant == variant && s.Model == bench.ModelOpen && p99 != nil {
				at := plotter.XY{X: s.Rate, Y: finite(p99.Median)}
				points.XYs = append(points.XYs, at)
				if text := dropped(s); text != "" {
					marks.XYs, marks.Labels = append(marks.XYs, at), append(marks.Labels, text)
				}
				points.errors = append(points.errors, struct{ Low, High float64 }{p99.Median - p99.Min, p99.Max - p99.Median})
			}
		}
		if len(points.XYs) == 0 {
			continue
		}
		points.sort()
		curve, dots, err := plotter.NewLinePoints(points)
		must(err)
		whiskers, err := plotter.NewYErrorBars(points)
		must(err)
		curve.LineStyle, whiskers.LineStyle.Color = line(i), colours[i%len(colours)]
		dots.Color, dots.Radius = colours[i%len(colours)], 2.5
		p.Add(curve, dots, whiskers)
		if len(marks.XYs) > 0 {
			texts, err := plotter.NewLabels(marks)
			must(err)
			for i := range texts.TextStyle {
				texts.TextStyle[i].Font.Variant, texts.TextStyle[i].Font.Size = "Sans", 8
				texts.TextStyle[i].XAlign, texts.TextStyle[i].YAlign = draw.XRight, draw.YTop
			}
			texts.Offset = vg.Point{X: -5, Y: -5}
			p.Add(texts)
		}
		legend.Add(variant, curve, dots)
		drawn = true
	}
	logarithmic(&p.Y)
	return Chart{Name: "p99-by-rate", Title: title, width: 640, height: 340, draw: beside(p, legend, 130)}, drawn
}

type rangesY struct {
	plotter.XYs
	errors plotter.YErrors
}

func (r rangesY) YError(i int) (low, high float64) { return r.errors.YError(i) }

func (r rangesY) sort() {
	type point struct {
		at  plotter.XY
		err struct{ Low, High float64 }
	}
	points := make([]point, len(r.XYs))
	for i := range points {
		points[i] = point{r.XYs[i], r.errors[i]}
	}
	slices.SortFunc(points, func(a, b point) int {
		if a.at.X < b.at.X {
			return -1
		}
		return 1
	})
	for i, p := range points {
		r.XYs[i], r.errors[i] = p.at, p.err
	}
}
