package bench

import "time"

// Detail is what a report shows of a measurement beside its row. Rates and
// latencies of accepted and of sold-out answers are apart: a "no" costs less
// than a sale, and must not be praised as one.
type Detail struct {
	// Accepted a second for as long as there was stock: until the last answer
	// or, when the sale sold out, until the last accepted one.
	GoodputPerS float64 `json:"goodput_per_s"`

	// Sold-out answers a second from the first of them to the last answer.
	SoldOutPerS float64 `json:"sold_out_per_s"`

	AcceptedLatency Latency `json:"accepted_latency"`
	SoldOutLatency  Latency `json:"sold_out_latency"`

	// Purchases that ended with a 423, as their user's patience or the
	// measurement was over. They are in no latency.
	GaveUp int64 `json:"gave_up"`

	// Open model: buyers that were due, and those of them that were not let in
	// because too many were under way. These are in no latency either.
	Arrivals int64 `json:"arrivals"`
	Dropped  int64 `json:"dropped"`

	// Open model: how late after a buyer was due the generator sent the first
	// request. It is part of the latency.
	LagP99Ms *float64 `json:"lag_p99_ms"`

	// What this process used of the machine's processors, 0 to 1, from the
	// common start to the last answer; nil where that can't be asked.
	CPUShare *float64 `json:"cpu_share"`

	TookS float64 `json:"took_s"` // from the common start to the last answer
}

// Latency is a distribution, in milliseconds. All zero when Count is.
type Latency struct {
	Count int64   `json:"count"`
	P50   float64 `json:"p50_ms"`
	P90   float64 `json:"p90_ms"`
	P95   float64 `json:"p95_ms"`
	P99   float64 `json:"p99_ms"`
	P999  float64 `json:"p99_9_ms"`
	Max   float64 `json:"max_ms"`
	Curve []Point `json:"curve"`
}

// Point says that so many percent were answered within Ms.
type Point struct {
	Percentile float64 `json:"percentile"`
	Ms         float64 `json:"ms"`
}

// percentiles are the points of a curve: equally far apart on an axis that
// gives every further nine the same room.
var percentiles = []float64{10, 25, 50, 60, 75, 80, 87.5, 90, 92.5, 95, 96, 97.5, 98, 98.75, 99, 99.25, 99.5, 99.6, 99.75, 99.8, 99.875, 99.9, 99.95, 99.99}

// latency leaves out the percentiles that so few answers say nothing about.
func (h *histogram) latency() Latency {
	l := Latency{Count: h.total.Load(), Curve: []Point{}}
	if l.Count == 0 {
		return l
	}
	l.P50, l.P90, l.P95 = ms(h.quantile(0.50)), ms(h.quantile(0.90)), ms(h.quantile(0.95))
	l.P99, l.P999, l.Max = ms(h.quantile(0.99)), ms(h.quantile(0.999)), ms(h.quantile(1))
	for _, p := range percentiles {
		if above := float64(l.Count) * (100 - p) / 100; above >= fewest {
			l.Curve = append(l.Curve, Point{p, ms(h.quantile(p / 100))})
		}
	}
	return l
}

func (m *measurement) detail(took time.Duration) Detail {
	d := Detail{
		AcceptedLatency: m.acceptedLatency.latency(),
		SoldOutLatency:  m.soldOutLatency.latency(),
		GaveUp:          m.gaveUp.Load(),
		Arrivals:        m.arrivals.Load(),
		Dropped:         m.dropped.Load(),
		LagP99Ms:        m.lag.p99(),
		CPUShare:        m.cpu.shareSince(m.start, m.start.Add(took)),
		TookS:           round3(took.Seconds()),
	}
	selling := took
	if first := m.firstSoldOut.Load(); first > 0 {
		selling = time.Duration(m.lastAccepted.Load())
		d.SoldOutPerS = perSecond(m.soldOut.Load(), took-time.Duration(first-1))
	}
	d.GoodputPerS = perSecond(m.accepted.Load(), selling)
	return d
}
