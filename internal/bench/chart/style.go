package chart

import (
	"image/color"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/font/liberation"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

var black, white, pale color.Color = color.Black, color.White, color.Gray{Y: 0xdd}

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

func thin(c color.Color) draw.LineStyle { return draw.LineStyle{Color: c, Width: 0.5} }

var writing = text.Plain{Fonts: font.NewCache(liberation.Collection())}

func words(size vg.Length) draw.TextStyle {
	return draw.TextStyle{Color: black, Font: font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}, Handler: writing}
}

// centred is text that stands beside its point, the middle of its figures and
// capitals at the point's height. vg's own centre is that of the line, which has
// room for a "g" too, and looks too low.
func centred(size vg.Length) draw.TextStyle {
	const capital = 0.69 // of the size, in Liberation Sans
	style := words(size)
	style.YAlign = draw.YAlignment((style.FontExtents().Ascent - size - capital*size/2) / style.Height("0"))
	return style
}
