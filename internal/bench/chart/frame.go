package chart

import (
	"math"
	"strconv"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"flashsale/internal/bench"
)

// frame is the room between two axes, and what is drawn in it.
type frame struct {
	title string
	x, y  axis
	grid  bool // across, too
	marks []mark
}

// mark draws a figure; at is where a value lies.
type mark func(c draw.Canvas, at func(x, y float64) vg.Point)

// axis goes from min to max.
type axis struct {
	label       string
	min, max    float64
	logarithmic bool
	ticks       []tick
}

type tick struct {
	at    float64
	label string
}

// emptyAxis grows by what is noted.
func emptyAxis(label string) axis { return axis{label: label, min: math.Inf(1), max: math.Inf(-1)} }

func (a *axis) note(value float64) { a.min, a.max = math.Min(a.min, value), math.Max(a.max, value) }

func (a *axis) empty() bool { return a.min > a.max }

// place is 0 for min and 1 for max.
func (a *axis) place(value float64) float64 {
	if a.logarithmic {
		return math.Log(value/a.min) / math.Log(a.max/a.min)
	}
	return (value - a.min) / (a.max - a.min)
}

// seen are the ticks that lie on the axis.
func (a *axis) seen() (seen []tick) {
	for _, t := range a.ticks {
		if t.at >= a.min && t.at <= a.max {
			seen = append(seen, t)
		}
	}
	return seen
}

// even has four to eight ticks, at multiples of 1, 2 or 5 of a power of ten.
func (a *axis) even() {
	step := math.Pow10(int(math.Floor(math.Log10(a.max - a.min))))
	for _, part := range []float64{0.5, 1, 2, 5} {
		if (a.max-a.min)*part/step >= 3 {
			step /= part
			break
		}
	}
	a.ticks = nil
	for n := math.Ceil(a.min / step); n*step <= a.max; n++ {
		a.ticks = append(a.ticks, tick{n * step, inWords(n * step)})
	}
}

// inWords writes thousands as the report does.
func inWords(value float64) string {
	if value >= 1000 {
		return bench.Thousands(int64(math.Round(value)))
	}
	return strconv.FormatFloat(value, 'g', 6, 64)
}

const (
	gap        vg.Length = 4 // between things that belong together
	tickLength vg.Length = 4
)

// draw gives the labels the room that they need, and the marks the rest.
func (f *frame) draw(c draw.Canvas) {
	names := words(9)
	lineHeight := names.Height("0")
	left := tickLength + gap
	for _, t := range f.y.seen() {
		left = max(left, names.Width(t.label)+tickLength+gap)
	}
	if f.y.label != "" {
		left += lineHeight + gap
	}
	right := gap
	if ticks := f.x.seen(); len(ticks) > 0 { // half of the last one's label may stand out
		right = max(right, names.Width(ticks[len(ticks)-1].label)/2)
	}
	title := words(11)
	area := draw.Crop(c, left, -right, 2*lineHeight+2*gap+tickLength, -title.Height(f.title)-2*gap)
	at := func(x, y float64) vg.Point {
		return vg.Point{X: area.X(f.x.place(x)), Y: area.Y(f.y.place(y))}
	}
	middle := (area.Min.X + area.Max.X) / 2
	title.XAlign, title.YAlign = draw.XCenter, draw.YTop
	c.FillText(title, vg.Point{X: middle, Y: c.Max.Y}, f.title)

	below := words(9)
	below.XAlign, below.YAlign = draw.XCenter, draw.YTop
	for _, t := range f.x.seen() {
		x := area.X(f.x.place(t.at))
		c.StrokeLine2(thin(pale), x, area.Min.Y, x, area.Max.Y)
		c.StrokeLine2(thin(black), x, area.Min.Y-tickLength, x, area.Min.Y)
		c.FillText(below, vg.Point{X: x, Y: area.Min.Y - tickLength - 2}, t.label)
	}
	below.YAlign = draw.YBottom
	c.FillText(below, vg.Point{X: middle, Y: c.Min.Y + 2}, f.x.label)

	beside := centred(9)
	beside.XAlign = draw.XRight
	for _, t := range f.y.seen() {
		y := area.Y(f.y.place(t.at))
		if f.grid {
			c.StrokeLine2(thin(pale), area.Min.X, y, area.Max.X, y)
			c.StrokeLine2(thin(black), area.Min.X-tickLength, y, area.Min.X, y)
		}
		c.FillText(beside, vg.Point{X: area.Min.X - tickLength - 2, Y: y}, t.label)
	}
	upwards := words(9)
	upwards.Rotation, upwards.XAlign, upwards.YAlign = math.Pi/2, draw.XCenter, draw.YTop
	c.FillText(upwards, vg.Point{X: c.Min.X, Y: (area.Min.Y + area.Max.Y) / 2}, f.y.label)

	c.StrokeLines(thin(black), []vg.Point{{X: area.Min.X, Y: area.Max.Y}, area.Min, {X: area.Max.X, Y: area.Min.Y}})
	for _, mark := range f.marks {
		mark(area, at)
	}
}

// whisker is the range from a to b, across the way from one to the other. There
// is none to be seen of a single run.
func whisker(c draw.Canvas, style draw.LineStyle, a, b vg.Point) {
	if a == b {
		return
	}
	const half = 2.5
	across := vg.Point{X: half}
	if a.Y == b.Y {
		across = vg.Point{Y: half}
	}
	c.StrokeLines(style, []vg.Point{a, b}, []vg.Point{a.Sub(across), a.Add(across)}, []vg.Point{b.Sub(across), b.Add(across)})
}

// entry is a line of a legend.
type entry struct {
	text  string
	style draw.LineStyle
	dot   func(draw.Canvas, draw.LineStyle, vg.Point) // nil: none
}

// beside draws the legend to the right of the frame, where it hides nothing.
func (f *frame) beside(legend []entry) func(draw.Canvas) {
	text := centred(9)
	width := vg.Length(0)
	for _, e := range legend {
		width = max(width, 8+26+text.Width(e.text))
	}
	return func(c draw.Canvas) {
		blank(c)
		c = draw.Crop(c, 6, -6, 6, -6)
		f.draw(draw.Crop(c, 0, -width, 0, 0))
		left, y := c.Max.X-width+8, c.Max.Y-30
		for _, e := range legend {
			c.StrokeLine2(e.style, left, y, left+20, y)
			if e.dot != nil {
				e.dot(c, e.style, vg.Point{X: left + 10, Y: y})
			}
			c.FillText(text, vg.Point{X: left + 26, Y: y}, e.text)
			y -= 15
		}
	}
}

func dot(c draw.Canvas, style draw.LineStyle, at vg.Point) {
	c.DrawGlyphNoClip(draw.GlyphStyle{Color: style.Color, Radius: 2.5, Shape: draw.CircleGlyph{}}, at)
}

func hollow(c draw.Canvas, style draw.LineStyle, at vg.Point) {
	dot(c, style, at)
	c.DrawGlyphNoClip(draw.GlyphStyle{Color: white, Radius: 1.5, Shape: draw.CircleGlyph{}}, at)
}

func blank(c draw.Canvas) {
	c.SetColor(white)
	c.Fill(c.Rectangle.Path())
}
