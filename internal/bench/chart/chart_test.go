package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"flashsale/internal/bench"
)

func report(model bench.Model, variants ...string) *bench.Report {
	r := &bench.Report{Parameters: bench.Parameters{RaceUsers: 300, RaceStock: 100}}
	loads := []bench.Load{{Users: 64}}
	if model == bench.ModelOpen {
		r.Parameters.Rates = []float64{100, 200.5}
		loads = []bench.Load{{Rate: 200.5}, {Rate: 100}}
	}
	var samples []bench.Sample
	for i, variant := range variants {
		for run := range 3 {
			x := float64((i + 1) * (run + 2))
			race := bench.Sample{Row: bench.Row{Variant: variant, Model: bench.ModelRace, OversellRate: 0.4 / float64(i+1)}}
			samples = append(samples, race)
			for _, load := range loads {
				s := bench.Sample{Rate: load.Rate, Row: bench.Row{Variant: variant, Model: load.Model(), Users: load.Users}}
				s.GoodputPerS = 300 * x
				if load.Rate > 200 && variant != "atomic" {
					s.Arrivals, s.Dropped = 100, 37
				}
				s.AcceptedLatency = bench.Latency{Count: 100, P99: 40 * x, Curve: []bench.Point{{Percentile: 50, Ms: x}, {Percentile: 90, Ms: 9 * x}, {Percentile: 99, Ms: 40 * x}}}
				samples = append(samples, s)
			}
		}
	}
	skipped := bench.Sample{Row: bench.SkippedRow("etcd", loads[0].Model(), "needs etcd")}
	skipped.Users, skipped.Rate = loads[0].Users, loads[0].Rate
	r.Summaries = bench.Summarise(append(samples, skipped))
	return r
}

func names(charts []Chart) string {
	var list []string
	for _, c := range charts {
		list = append(list, c.Name)
	}
	return strings.Join(list, " ")
}

func TestWhichChartsThereAre(t *testing.T) {
	for _, test := range []struct {
		r    *bench.Report
		want string
	}{
		{report(bench.ModelClosed, "none", "atomic"), "oversell latency"},
		{report(bench.ModelOpen, "none", "atomic"), "oversell latency-200.5 latency-100 p99-by-rate"},
		{report(bench.ModelClosed), ""}, // all were skipped
		{new(bench.Report), ""},
	} {
		if got := names(Of(test.r)); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}

func TestSVGIsXMLThatNamesWhatIsShown(t *testing.T) {
	for _, c := range append(Of(report(bench.ModelClosed, "none", "atomic")), Of(report(bench.ModelOpen, "none", "atomic"))...) {
		var svg bytes.Buffer
		if err := c.SVG(&svg); err != nil {
			t.Fatal(err)
		}
		var words, elements []string
		for decoder := xml.NewDecoder(&svg); ; {
			token, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", c.Name, err)
			}
			switch token := token.(type) {
			case xml.CharData:
				words = append(words, strings.TrimSpace(string(token)))
			case xml.StartElement:
				elements = append(elements, token.Name.Local)
			}
		}
		all := strings.Join(words, "|")
		for _, want := range []string{"none", "atomic"} {
			if !strings.Contains(all, want) {
				t.Errorf("%s doesn't name %s: %s", c.Name, want, all)
			}
		}
		if strings.Contains(all, "37 % dropped)") != (c.Name == "latency-200.5" || c.Name == "p99-by-rate") {
			t.Errorf("%s: percentiles without a word on who was dropped, or the other way round: %s", c.Name, all)
		}
		if elements[0] != "svg" || strings.Contains(all, "etcd") || strings.Contains(all, "NaN") {
			t.Errorf("%s: %s", c.Name, all)
		}
		if c.Name == "oversell" && (!strings.Contains(all, "40.0 %") || !strings.Contains(all, "20.0 %") || !strings.Contains(all, "900")) {
			t.Errorf("%s lacks the figures: %s", c.Name, all)
		}
	}
}

func TestPNGShowsEveryVariant(t *testing.T) {
	for _, c := range append(Of(report(bench.ModelClosed, "none", "atomic")), Of(report(bench.ModelOpen, "none", "atomic"))...) {
		var file bytes.Buffer
		if err := c.PNG(&file); err != nil {
			t.Fatal(err)
		}
		picture, err := png.Decode(&file)
		if err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		count := pixels(picture)
		area := picture.Bounds().Dx() * picture.Bounds().Dy()
		for _, i := range []int{orange, blue} { // either two bars or two curves
			if count[key(colours[i])] < area/5000 {
				t.Errorf("%s: %d of %d pixels have colour %d", c.Name, count[key(colours[i])], area, i)
			}
		}
		if white := count["ffff"]; white < area/3 || white > area*99/100 {
			t.Errorf("%s: %d of %d pixels are white", c.Name, white, area)
		}
	}
}

func pixels(picture image.Image) map[string]int {
	count := make(map[string]int)
	for y := picture.Bounds().Min.Y; y < picture.Bounds().Max.Y; y++ {
		for x := picture.Bounds().Min.X; x < picture.Bounds().Max.X; x++ {
			count[key(picture.At(x, y))]++
		}
	}
	return count
}

func key(c interface{ RGBA() (r, g, b, a uint32) }) string {
	r, g, b, _ := c.RGBA()
	if r == 0xffff && g == 0xffff && b == 0xffff {
		return "ffff"
	}
	return fmt.Sprint(r>>8, g>>8, b>>8)
}

// Zeros would be praise for a measurement in which nothing can be oversold.
func TestWithoutARaceLostUpdatesAreShown(t *testing.T) {
	r := report(bench.ModelClosed, "none")
	r.Parameters.RaceUsers = 0
	c, _ := oversell(r)
	var svg bytes.Buffer
	if err := c.SVG(&svg); err != nil || !strings.Contains(svg.String(), "Lost updates: % of units sold") {
		t.Errorf("%v", err)
	}
}

func TestManyVariantsAreToldApart(t *testing.T) {
	seen := map[string]bool{}
	for i := range len(colours) * len(dashes) {
		seen[fmt.Sprint(line(i))] = true
	}
	if len(seen) != len(colours)*len(dashes) {
		t.Errorf("%d styles", len(seen))
	}
}

func TestAxes(t *testing.T) {
	for percentile, want := range map[float64]float64{0: 0, 90: 1, 99: 2, 99.9: 3} {
		if got := nines(percentile); math.Abs(got-want) > 1e-9 {
			t.Errorf("%v %%: %v", percentile, got)
		}
	}
	for high, want := range map[float64]string{1: "0 0.2 0.4 0.6 0.8 1", 1.49: "0 0.2 0.4 0.6 0.8 1 1.2 1.4", 9999: "0 2,000 4,000 6,000 8,000", 4120: "0 1,000 2,000 3,000 4,000", 25: "0 5 10 15 20 25"} {
		a := axis{max: high}
		a.even()
		var labels []string
		for _, t := range a.seen() {
			labels = append(labels, t.label)
		}
		if got := strings.Join(labels, " "); got != want {
			t.Errorf("up to %v: ticks %s, want %s", high, got, want)
		}
	}
	a := axis{min: 600, max: 9000}
	a.powers()
	if seen := a.seen(); len(seen) != 5 || seen[0].label != "500" || seen[4].label != "10,000" {
		t.Errorf("ticks %v", seen)
	}
	for _, test := range []struct{ low, high, from, to float64 }{{3, 70, 2, 100}, {0, 0.4, 0.001, 0.5}, {5, 5, 5, 50}} {
		a := axis{min: test.low, max: test.high}
		if a.powers(); math.Abs(a.min-test.from) > 1e-9 || math.Abs(a.max-test.to) > 1e-9 {
			t.Errorf("%+v: from %v to %v", test, a.min, a.max)
		}
	}
}

// placed is a text of a chart that stands upright, and the room that it takes.
type placed struct {
	text                     string
	left, right, top, bottom float64
}

func writtenIn(t *testing.T, c Chart) (texts []placed) {
	t.Helper()
	var svg bytes.Buffer
	if err := c.SVG(&svg); err != nil {
		t.Fatal(err)
	}
	type element struct {
		X      float64 `xml:"x,attr"`
		Y      float64 `xml:"y,attr"`
		Size   float64 `xml:"font-size,attr"`
		Length float64 `xml:"textLength,attr"`
		Text   string  `xml:",chardata"`
	}
	var document struct {
		Texts []element `xml:"text"` // those that are turned stand within a group
	}
	if err := xml.Unmarshal(svg.Bytes(), &document); err != nil {
		t.Fatal(err)
	}
	for _, e := range document.Texts {
		texts = append(texts, placed{e.Text, e.X, e.X + e.Length, e.Y - 0.7*e.Size, e.Y + 0.2*e.Size})
	}
	return texts
}

func TestTextsAreNeitherClippedNorOnTopOfEachOther(t *testing.T) {
	many := []string{"none", "setnx", "watchdog", "watchdog-combining", "striped", "fair", "function", "etcd2", "zookeeper"}
	wide := report(bench.ModelClosed, "none", "atomic") // a tick at the very end of the axis
	for i := range wide.Summaries {
		if s := &wide.Summaries[i]; s.Skipped == nil {
			s.AcceptedPerS = &bench.Figure{Median: 8e6, Min: 8e6, Max: 8e6}
		}
	}
	charts := slices.Concat(Of(wide), Of(report(bench.ModelClosed, many...)), Of(report(bench.ModelOpen, many...)))
	for _, c := range charts {
		texts := writtenIn(t, c)
		if len(texts) < 10 {
			t.Errorf("%s: %v", c.Name, texts)
		}
		for i, a := range texts {
			if a.left < 0 || a.right > float64(c.width) || a.top < 0 || a.bottom > float64(c.height) {
				t.Errorf("%s: %+v is clipped: the picture is %v x %v", c.Name, a, c.width, c.height)
			}
			for _, b := range texts[:i] {
				if a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom {
					t.Errorf("%s: %+v and %+v overlap", c.Name, a, b)
				}
			}
		}
	}
}

// What stands beside a line or a bar has the middle of its capitals there.
func TestTextIsBesideWhatItNames(t *testing.T) {
	c := Chart{width: 100, height: 100, draw: func(c draw.Canvas) { c.FillText(centred(10), vg.Point{X: 20, Y: 60}, "A1") }}
	text := writtenIn(t, c)[0]
	if middle := (text.top + text.bottom - 2) / 2; math.Abs(middle-40) > 0.2 { // without what "g" has below the line; from the top
		t.Errorf("%+v has its middle at %v, want 40", text, middle)
	}
}

// Of a single run there is neither a median nor a range to speak of.
func TestOneRunIsNoMedian(t *testing.T) {
	for runs, want := range map[int]bool{1: false, 3: true} {
		r := report(bench.ModelOpen, "none", "atomic")
		r.Parameters.Runs = runs
		for _, c := range Of(r) {
			var svg bytes.Buffer
			if err := c.SVG(&svg); err != nil || strings.Contains(svg.String(), "of the runs") != want {
				t.Errorf("%d runs, %s: %v, %s", runs, c.Name, err, svg.String())
			}
		}
	}
}

// The axis ends at a percentile that is named, or nobody can tell how far it goes.
func TestLatencyEndsAtANamedPercentile(t *testing.T) {
	r := report(bench.ModelClosed, "none")
	for i := range r.Summaries {
		curve := r.Summaries[i].AcceptedLatency.Curve
		if len(curve) > 0 {
			curve[len(curve)-1].Percentile = 99.2
		}
	}
	for _, text := range writtenIn(t, Of(r)[1]) {
		if text.text == "99.5" {
			return
		}
	}
	t.Error("the axis goes on after 99")
}

// A point is hollow where buyers were dropped, and the legend says so.
func TestPointsWithDroppedBuyersAreHollow(t *testing.T) {
	for variants, want := range map[string]int{"none,atomic": 2, "atomic": 0} { // one of the points, and the legend
		c, _ := rates(report(bench.ModelOpen, strings.Split(variants, ",")...))
		var svg bytes.Buffer
		if err := c.SVG(&svg); err != nil {
			t.Fatal(err)
		}
		white := strings.Count(svg.String(), `fill="#ffffff"`) - 1 // of the paper
		if white != want || strings.Contains(svg.String(), "buyers were dropped") != (want > 0) {
			t.Errorf("%s: %d hollow ones, want %d: %s", variants, white, want, svg.String())
		}
	}
}
