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
	"strings"
	"testing"

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
				if load.Rate > 200 && variant == "none" {
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
		if strings.Contains(all, "(37 % dropped)") != (c.Name == "latency-200.5" || c.Name == "p99-by-rate") {
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
	for high, want := range map[float64]string{1: "0 0.2 0.4 0.6 0.8 1", 1.49: "0 0.2 0.4 0.6 0.8 1 1.2 1.4", 9999: "0 2000 4000 6000 8000", 4120: "0 1000 2000 3000 4000", 25: "0 5 10 15 20 25"} {
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
	for _, test := range []struct{ low, high, from, to float64 }{{3, 70, 2, 100}, {0, 0.4, 0.001, 0.5}, {5, 5, 5, 50}} {
		a := axis{min: test.low, max: test.high}
		if a.powers(); math.Abs(a.min-test.from) > 1e-9 || math.Abs(a.max-test.to) > 1e-9 {
			t.Errorf("%+v: from %v to %v", test, a.min, a.max)
		}
	}
}
