package chart

import (
	"image/color"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Colours that people who see few can tell apart (Okabe and Ito).
var colours = []color.Color{
	color.RGBA{R: 0xd5, G: 0x5e, B: 0x00, A: 0xff},
	color.RGBA{R: 0x00, G: 0x72, B: 0xb2, A: 0xff},
	color.RGBA{R: 0x00, G: 0x9e, B: 0x73, A: 0xff},
	color.RGBA{R: 0xcc, G: 0x79, B: 0xa7, A: 0xff},
	color.RGBA{R: 0xe6, G: 0x9f, B: 0x00, A: 0xff},
	color.RGBA{R: 0x56, G: 0xb4, B: 0xe9, A: 0xff},
	color.RGBA{R: 0x00, G: 0x00, B: 0x00, A: 0xff},
}

var dashes = [][]vg.Length{nil, {6, 3}, {2, 2}}

const (
	orange = 0 // index of what is bad
	blue   = 1 // and of what is good
)

// line is the style of the i-th of several: colours first, then dashes.
func line(i int) draw.LineStyle {
	return draw.LineStyle{Color: colours[i%len(colours)], Width: 1.5, Dashes: dashes[i/len(colours)%len(dashes)]}
}

// newPlot has a sans-serif font throughout, which plot has no one switch for.
func newPlot(title, x, y string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Title.Padding = 8
	for _, f := range []*font.Font{&p.Title.TextStyle.Font, &p.X.Label.TextStyle.Font, &p.Y.Label.TextStyle.Font, &p.X.Tick.Label.Font, &p.Y.Tick.Label.Font} {
		f.Typeface, f.Variant = "Liberation", "Sans"
	}
	p.X.Tick.Marker, p.Y.Tick.Marker = plainTicks{}, plainTicks{}
	p.Title.TextStyle.Font.Size = 11
	p.X.Label.TextStyle.Font.Size, p.Y.Label.TextStyle.Font.Size = 9, 9
	p.X.Tick.Label.Font.Size, p.Y.Tick.Label.Font.Size = 9, 9
	return p
}

// plainTicks are the usual ones, with 2500 instead of 2500.00.
type plainTicks struct{}

func (plainTicks) Ticks(min, max float64) []plot.Tick {
	ticks := plot.DefaultTicks{}.Ticks(min, max)
	for i, t := range ticks {
		if !t.IsMinor() {
			ticks[i].Label = strconv.FormatFloat(t.Value, 'g', 6, 64)
		}
	}
	return ticks
}

func newLegend() plot.Legend {
	l := plot.NewLegend()
	l.TextStyle.Font.Typeface, l.TextStyle.Font.Variant, l.TextStyle.Font.Size = "Liberation", "Sans", 9
	l.Top, l.Left = true, true
	l.Padding = 3
	return l
}

// beside draws the legend to the right of the plot, where it hides nothing.
func beside(p *plot.Plot, l plot.Legend, width vg.Length) func(draw.Canvas) {
	return func(c draw.Canvas) {
		c.SetColor(color.White)
		c.Fill(c.Rectangle.Path())
		c = draw.Crop(c, 6, -6, 6, -6)
		p.Draw(draw.Crop(c, 0, -width, 0, 0))
		l.Draw(draw.Crop(c, c.Max.X-c.Min.X-width+8, 0, 0, -24))
	}
}
