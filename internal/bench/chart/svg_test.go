package chart

import (
	"bytes"
	"image/color"
	"math"
	"strings"
	"testing"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// written is what a drawing of 100 by 50 points writes, without the document around it.
func written(t *testing.T, drawing func(c draw.Canvas)) string {
	t.Helper()
	s := newSVG(100, 50)
	drawing(draw.New(s))
	var document bytes.Buffer
	if n, err := s.WriteTo(&document); err != nil || n != int64(document.Len()) {
		t.Fatalf("%d of %d bytes, %v", n, document.Len(), err)
	}
	head, rest, _ := strings.Cut(document.String(), "\n")
	body, end := strings.CutSuffix(rest, "</svg>\n")
	if !strings.Contains(head, ` width="100pt" height="50pt" viewBox="0 0 100 50"`) || !end {
		t.Errorf("document %s", document.String())
	}
	return body
}

// vg draws from the bottom, SVG from the top.
func TestSVGOfEachStep(t *testing.T) {
	for name, test := range map[string]struct {
		drawing func(c draw.Canvas)
		want    string
	}{
		"a line, dashed": {
			func(c draw.Canvas) {
				style := draw.LineStyle{Color: color.RGBA{R: 0xd5, G: 0x5e, A: 0xff}, Width: 1.5, Dashes: []vg.Length{6, 3}, DashOffs: 1}
				c.StrokeLine2(style, 0, 0, 100.0/3, 10)
			},
			`<path d="M0 50L33.33 40" fill="none" stroke="#d55e00" stroke-width="1.5" stroke-dasharray="6 3" stroke-dashoffset="1"/>`,
		},
		"no width, no line": {func(c draw.Canvas) { c.StrokeLine2(draw.LineStyle{}, 0, 0, 1, 1) }, ""},
		"an area, black unless said": {
			func(c draw.Canvas) { c.FillPolygon(nil, []vg.Point{{X: 1, Y: 2}, {X: 3, Y: 2}, {X: 3, Y: 4}}) },
			`<path d="M1 48L3 48L3 46Z" fill="#000000"/>`,
		},
		"curves": {
			func(c draw.Canvas) {
				var p vg.Path
				p.Move(vg.Point{})
				p.QuadTo(vg.Point{X: 1, Y: 1}, vg.Point{X: 2})
				p.CubeTo(vg.Point{X: 3, Y: 1}, vg.Point{X: 4, Y: 1}, vg.Point{X: 5})
				c.Fill(p)
			},
			`<path d="M0 50Q1 49 2 50C3 49 4 49 5 50" fill="#000000"/>`,
		},
		"a circle": {
			func(c draw.Canvas) { dot(c, draw.LineStyle{}, vg.Point{X: 10, Y: 10}) },
			`<path d="M12.5 40L12.5 40A2.5 2.5 0 0 0 10 37.5A2.5 2.5 0 0 0 7.5 40A2.5 2.5 0 0 0 10 42.5A2.5 2.5 0 0 0 12.5 40Z" fill="#000000"/>`,
		},
		"part of a circle, clockwise": {
			func(c draw.Canvas) {
				var p vg.Path
				p.Move(vg.Point{})
				p.Arc(vg.Point{X: 10}, 10, math.Pi, -math.Pi/2)
				c.Fill(p)
			},
			`<path d="M0 50L0 50A10 10 0 0 1 10 40" fill="#000000"/>`,
		},
		"what is pushed comes back": {
			func(c draw.Canvas) {
				c.SetColor(pale)
				c.Push()
				c.SetColor(nil)
				c.Translate(vg.Point{X: 5, Y: 7})
				c.Rotate(math.Pi / 2)
				c.Push()
				c.Scale(2, 3)
				c.Pop()
				c.Pop()
				c.FillPolygon(pale, []vg.Point{{}})
				c.Translate(vg.Point{X: 1})
			},
			"<g transform=\"translate(5 -7)\">\n<g transform=\"rotate(-90 0 50)\">\n<g transform=\"translate(0 50) scale(2 3) translate(0 -50)\">\n</g>\n</g>\n</g>\n" +
				"<path d=\"M0 50Z\" fill=\"#dddddd\"/>\n<g transform=\"translate(1 0)\">\n</g>",
		},
		"a text": {
			func(c draw.Canvas) { c.FillText(words(10), vg.Point{X: 1, Y: 2}, `5 < "6" & more`) },
			`<text x="1" y="47.05" font-size="10" fill="#000000" textLength="64.63" lengthAdjust="spacingAndGlyphs">5 &lt; &#34;6&#34; &amp; more</text>`,
		},
		"a text of no size": {func(c draw.Canvas) { c.FillText(words(0), vg.Point{}, "x") }, ""},
	} {
		if got := strings.TrimSuffix(written(t, test.drawing), "\n"); got != test.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, test.want)
		}
	}
}
