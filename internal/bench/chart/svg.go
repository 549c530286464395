package chart

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"image"
	"image/color"
	"io"
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
)

// svgCanvas is a vg.Canvas that writes SVG: as much as the charts of this package
// need, in opaque colours and one typeface. vg counts y from the bottom, SVG from
// the top.
type svgCanvas struct {
	width, height vg.Length
	body          bytes.Buffer
	pen           pen
	saved         []pen
}

// pen is what Push saves.
type pen struct {
	color  string
	width  vg.Length
	dashes []vg.Length
	offset vg.Length
	groups int // opened since the last Push, by transformations
}

var _ vg.CanvasWriterTo = (*svgCanvas)(nil)

func newSVG(width, height vg.Length) *svgCanvas {
	s := &svgCanvas{width: width, height: height}
	vg.Initialize(s)
	return s
}

func (s *svgCanvas) Size() (width, height vg.Length) { return s.width, s.height }

func (s *svgCanvas) SetLineWidth(width vg.Length) { s.pen.width = width }

func (s *svgCanvas) SetLineDash(pattern []vg.Length, offset vg.Length) {
	s.pen.dashes, s.pen.offset = pattern, offset
}

func (s *svgCanvas) SetColor(c color.Color) {
	if c == nil {
		c = color.Black
	}
	r, g, b, _ := c.RGBA()
	s.pen.color = fmt.Sprintf("#%02x%02x%02x", r>>8, g>>8, b>>8)
}

func (s *svgCanvas) Push() {
	s.saved = append(s.saved, s.pen)
	s.pen.groups = 0
}

func (s *svgCanvas) Pop() {
	s.endGroups(s.pen.groups)
	s.pen, s.saved = s.saved[len(s.saved)-1], s.saved[:len(s.saved)-1]
}

func (s *svgCanvas) Rotate(radians float64) {
	s.group("rotate(%s 0 %s)", number(vg.Length(-radians*180/math.Pi)), number(s.height))
}

func (s *svgCanvas) Translate(by vg.Point) { s.group("translate(%s %s)", number(by.X), number(-by.Y)) }

func (s *svgCanvas) Scale(x, y float64) {
	bottom := number(s.height)
	s.group("translate(0 %s) scale(%s %s) translate(0 -%s)", bottom, number(vg.Length(x)), number(vg.Length(y)), bottom)
}

func (s *svgCanvas) group(transform string, values ...any) {
	fmt.Fprintf(&s.body, `<g transform="`+transform+"\">\n", values...)
	s.pen.groups++
}

func (s *svgCanvas) endGroups(n int) { s.body.WriteString(strings.Repeat("</g>\n", n)) }

func (s *svgCanvas) Fill(path vg.Path) {
	fmt.Fprintf(&s.body, "<path d=%q fill=%q/>\n", s.data(path), s.pen.color)
}

func (s *svgCanvas) Stroke(path vg.Path) {
	if s.pen.width <= 0 {
		return
	}
	fmt.Fprintf(&s.body, "<path d=%q fill=\"none\" stroke=%q stroke-width=%q", s.data(path), s.pen.color, number(s.pen.width))
	if len(s.pen.dashes) > 0 {
		lengths := make([]string, len(s.pen.dashes))
		for i, length := range s.pen.dashes {
			lengths[i] = number(length)
		}
		fmt.Fprintf(&s.body, " stroke-dasharray=%q stroke-dashoffset=%q", strings.Join(lengths, " "), number(s.pen.offset))
	}
	s.body.WriteString("/>\n")
}

// data is a path as SVG writes it.
func (s *svgCanvas) data(path vg.Path) string {
	var d strings.Builder
	for i, step := range path {
		switch step.Type {
		case vg.MoveComp:
			d.WriteString("M" + s.at(step.Pos))
		case vg.LineComp:
			d.WriteString("L" + s.at(step.Pos))
		case vg.CurveComp:
			d.WriteString([]string{1: "Q", 2: "C"}[len(step.Control)])
			for _, control := range step.Control {
				d.WriteString(s.at(control) + " ")
			}
			d.WriteString(s.at(step.Pos))
		case vg.ArcComp:
			s.arc(&d, step, i == 0)
		case vg.CloseComp:
			d.WriteString("Z")
		}
	}
	return d.String()
}

// arc goes in pieces of less than half a circle: between two points there are
// two arcs otherwise, and for a whole circle none.
func (s *svgCanvas) arc(d *strings.Builder, arc vg.PathComp, first bool) {
	on := func(angle float64) string {
		sin, cos := math.Sincos(angle)
		return s.at(vg.Point{X: arc.Pos.X + arc.Radius*vg.Length(cos), Y: arc.Pos.Y + arc.Radius*vg.Length(sin)})
	}
	d.WriteString(map[bool]string{true: "M", false: "L"}[first] + on(arc.Start))
	sweep := 0 // counter-clockwise, in SVG's words
	if arc.Angle < 0 {
		sweep = 1
	}
	pieces := max(1, math.Ceil(math.Abs(arc.Angle)*2/math.Pi))
	for i := 1.0; i <= pieces; i++ {
		fmt.Fprintf(d, "A%s %[1]s 0 0 %d %s", number(arc.Radius), sweep, on(arc.Start+arc.Angle*i/pieces))
	}
}

// FillString says how wide the text was taken to be, for viewers that have
// neither of the typefaces.
func (s *svgCanvas) FillString(face font.Face, at vg.Point, text string) {
	if face.Font.Size == 0 {
		return
	}
	fmt.Fprintf(&s.body, `<text x="%s" y="%s" font-size="%s" fill="%s" textLength="%s" lengthAdjust="spacingAndGlyphs">`,
		number(at.X), number(s.height-at.Y), number(face.Font.Size), s.pen.color, number(face.Width(text)))
	_ = xml.EscapeText(&s.body, []byte(text)) // a Buffer takes everything
	s.body.WriteString("</text>\n")
}

// DrawImage is of no use to these charts.
func (s *svgCanvas) DrawImage(vg.Rectangle, image.Image) {
	panic("chart: an SVG of ours holds no pictures")
}

// WriteTo writes the document. Arial is as wide as Liberation Sans, letter by letter.
func (s *svgCanvas) WriteTo(w io.Writer) (int64, error) {
	s.endGroups(s.pen.groups)
	s.pen.groups = 0
	width, height := number(s.width), number(s.height)
	n, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" width="%spt" height="%spt" viewBox="0 0 %[1]s %[2]s" font-family="Liberation Sans, Arial, Helvetica, sans-serif">
%[3]s</svg>
`, width, height, s.body.Bytes())
	return int64(n), err
}

func (s *svgCanvas) at(p vg.Point) string { return number(p.X) + " " + number(s.height-p.Y) }

// number is in points, to a hundredth.
func number(x vg.Length) string {
	return strconv.FormatFloat(math.Round(float64(x)*100)/100+0, 'f', -1, 64)
}
