package chart

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"flashsale/internal/bench"
)

// latency is by percentile, each further nine having the same room, so that the
// tail is not squeezed into the margin.
func latency(r *bench.Report, load bench.Load, name string) (Chart, bool) {
	title := fmt.Sprintf("Latency of accepted purchases, %s model, %s", load.Model(), load)
	p, legend := newPlot(title, "percentile", "ms, median of the runs"), newLegend()
	p.Add(grid())
	order := bench.Measured(r.Summaries)
	for _, s := range r.Summaries {
		if s.Model == bench.ModelRace || s.Users != load.Users || s.Rate != load.Rate || len(s.AcceptedLatency.Curve) < 2 {
			continue
		}
		points := make(plotter.XYs, len(s.AcceptedLatency.Curve))
		for i, point := range s.AcceptedLatency.Curve {
			points[i] = plotter.XY{X: nines(point.Percentile), Y: finite(point.Ms.Median)}
		}
		curve, err := plotter.NewLine(points)
		must(err)
		curve.LineStyle = line(indexOf(order, s.Variant))
		p.Add(curve)
		legend.Add(strings.TrimSpace(s.Variant+" "+dropped(s)), curve)
	}
	if math.IsInf(p.X.Min, 0) {
		return Chart{}, false
	}
	p.X.Min = 0
	p.X.Tick.Marker = nineTicks{}
	logarithmic(&p.Y)
	return Chart{Name: name, Title: title, width: 700, height: 340, draw: beside(p, legend, 190)}, true
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

type nineTicks struct{}

func (nineTicks) Ticks(min, max float64) (ticks []plot.Tick) {
	for _, percentile := range []float64{0, 50, 75, 90, 95, 99, 99.5, 99.9, 99.95, 99.99} {
		if at := nines(percentile); at >= min && at <= max {
			ticks = append(ticks, plot.Tick{Value: at, Label: strconv.FormatFloat(percentile, 'f', -1, 64) + "%"})
		}
	}
	return ticks
}

// logarithmic makes an axis of positive values that begins and ends at 1, 2 or 5
// of a power of ten.
func logarithmic(axis *plot.Axis) {
	low, high := finite(axis.Min), finite(axis.Max)
	axis.Min, axis.Max = math.Inf(-1), math.Inf(1)
	var ticks []plot.Tick
	for exponent := -3; exponent <= 7; exponent++ {
		for _, digit := range []float64{1, 2, 5} {
			at := digit * math.Pow10(exponent)
			if at <= low {
				axis.Min = math.Max(axis.Min, at)
			}
			if at >= high {
				axis.Max = math.Min(axis.Max, at)
			}
			ticks = append(ticks, plot.Tick{Value: at, Label: strconv.FormatFloat(at, 'g', 4, 64)})
		}
	}
	axis.Min, axis.Max = finite(axis.Min), math.Max(axis.Max, axis.Min*10)
	axis.Scale, axis.Tick.Marker = plot.LogScale{}, plot.ConstantTicks(ticks)
}

func indexOf(order []string, variant string) int {
	for i, v := range order {
		if v == variant {
			return i
		}
	}
	return 0
}

func grid() *plotter.Grid {
	g := plotter.NewGrid()
	g.Vertical.Color, g.Horizontal.Color = pale, pale
	return g
}
