package main

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"
)

type kind string

const (
	counter kind = "counter"
	gauge   kind = "gauge"
	rate    kind = "rate"
	trend   kind = "trend"
)

// metric collects samples, and hands those with the right tags to its sub-metrics.
type metric struct {
	name   string
	kind   kind
	isTime bool
	tags   map[string]string // of a sub-metric: what a sample must have
	sink   sink
	subs   []*metric
}

// registry holds a run's metrics. One lock is enough for a check.
type registry struct {
	mu      sync.Mutex
	metrics map[string]*metric // sub-metrics too, as name{tag:value}
}

// newRegistry has k6's built-in metrics that scriptcheck fills.
func newRegistry() *registry {
	r := &registry{metrics: map[string]*metric{}}
	for name, m := range map[string]metric{
		"http_reqs":          {kind: counter},
		"http_req_failed":    {kind: rate},
		"http_req_duration":  {kind: trend, isTime: true},
		"iterations":         {kind: counter},
		"iteration_duration": {kind: trend, isTime: true},
		"checks":             {kind: rate},
		"dropped_iterations": {kind: counter},
	} {
		m.name = name
		r.metrics[name] = &m
	}
	return r
}

var metricName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]{0,127}$`)

// declare makes a metric; every VU declares the script's metrics again.
func (r *registry) declare(name string, k kind, isTime bool) (*metric, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !metricName.MatchString(name) {
		return nil, fmt.Errorf("metric name %q is not valid", name)
	}
	if m, ok := r.metrics[name]; ok {
		if m.kind != k || m.isTime != isTime {
			return nil, fmt.Errorf("metric %q exists already with another type", name)
		}
		return m, nil
	}
	m := &metric{name: name, kind: k, isTime: isTime}
	r.metrics[name] = m
	return m, nil
}

// sub finds name, or makes the sub-metric name{tag:value,...} of a known metric.
func (r *registry) sub(name string) (*metric, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	base, rest, isSub := strings.Cut(name, "{")
	parent, ok := r.metrics[base]
	if !ok {
		return nil, fmt.Errorf("no metric %q", base)
	}
	if !isSub {
		return parent, nil
	}
	if m, ok := r.metrics[name]; ok {
		return m, nil
	}
	list, closed := strings.CutSuffix(rest, "}")
	tags := map[string]string{}
	for pair := range strings.SplitSeq(list, ",") {
		key, value, ok := strings.Cut(pair, ":")
		if !ok || key == "" || !closed {
			return nil, fmt.Errorf("sub-metric %q is not name{tag:value,...}", name)
		}
		tags[strings.TrimSpace(key)] = strings.TrimSpace(value)
	}
	m := &metric{name: name, kind: parent.kind, isTime: parent.isTime, tags: tags}
	parent.subs = append(parent.subs, m)
	r.metrics[name] = m
	return m, nil
}

func (r *registry) add(m *metric, value float64, tags map[string]string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m.sink.add(value)
	for _, sub := range m.subs {
		if sub.matches(tags) {
			sub.sink.add(value)
		}
	}
}

func (r *registry) addTo(name string, value float64, tags map[string]string) {
	r.add(r.metrics[name], value, tags) // built-in: in the map since newRegistry
}

func (m *metric) matches(tags map[string]string) bool {
	for key, value := range m.tags {
		if got, ok := tags[key]; !ok || got != value {
			return false
		}
	}
	return true
}

// sorted is every metric, by name.
func (r *registry) sorted() []*metric {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.SortedFunc(maps.Values(r.metrics), func(a, b *metric) int { return strings.Compare(a.name, b.name) })
}

// sink keeps samples; which of its figures mean something is the kind's matter.
type sink struct {
	values        []float64 // all: a check has few
	sum           float64
	nonZero, last float64
	sorted        bool
}

func (s *sink) add(v float64) {
	s.values, s.sorted = append(s.values, v), false
	s.sum += v
	s.last = v
	if v != 0 {
		s.nonZero++
	}
}

// percentile interpolates between the two nearest samples, 0 without samples.
func (s *sink) percentile(p float64) float64 {
	if len(s.values) == 0 {
		return 0
	}
	if !s.sorted {
		slices.Sort(s.values)
		s.sorted = true
	}
	at := p / 100 * float64(len(s.values)-1)
	low, high := s.values[int(math.Floor(at))], s.values[int(math.Ceil(at))]
	return low + (high-low)*(at-math.Floor(at))
}
