package chart

import (
	"fmt"
	"io"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"

	"flashsale/internal/bench"
)

// Chart is a picture of a report.
type Chart struct {
	Name          string // of its files, without an extension
	Title         string
	width, height vg.Length
	draw          func(draw.Canvas)
}

// Of are the charts that a report has figures for: overselling beside goodput,
// latency by percentile for each load, and P99 against the rate when there were
// several.
func Of(r *bench.Report) []Chart {
	var charts []Chart
	add := func(c Chart, ok bool) {
		if ok {
			charts = append(charts, c)
		}
	}
	add(oversell(r))
	loads := bench.Loads(r.Summaries)
	for _, load := range loads {
		name := "latency"
		if len(loads) > 1 {
			name = fmt.Sprintf("latency-%v", load.Rate+float64(load.Users))
		}
		add(latency(r, load, name))
	}
	add(rates(r))
	return charts
}

// SVG writes the chart with its texts as texts.
func (c Chart) SVG(w io.Writer) error {
	canvas := newSVG(c.width, c.height)
	c.draw(draw.New(canvas))
	_, err := canvas.WriteTo(w)
	return err
}

// PNG writes the chart at twice the resolution of a common screen.
func (c Chart) PNG(w io.Writer) error {
	canvas := vgimg.NewWith(vgimg.UseWH(c.width, c.height), vgimg.UseDPI(144))
	c.draw(draw.New(canvas))
	_, err := vgimg.PngCanvas{Canvas: canvas}.WriteTo(w)
	return err
}
