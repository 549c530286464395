package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// threshold is one expression on one metric or sub-metric.
type threshold struct {
	source    string
	metric    *metric
	aggregate string // count, rate, value, avg, min, med, max, p(N)
	operator  string
	bound     float64
	failed    bool
}

var (
	expression = regexp.MustCompile(`^\s*([a-z]+(?:\([0-9.]+\))?)\s*(<=|<|>=|>|===|==|!=)\s*([0-9]+(?:\.[0-9]+)?)\s*$`)
	percentile = regexp.MustCompile(`^p\(([0-9]+(?:\.[0-9]+)?)\)$`)
)

// aggregates says which aggregations a kind of metric has in a threshold.
var aggregates = map[kind][]string{
	counter: {"count", "rate"},
	gauge:   {"value"},
	rate:    {"rate"},
	trend:   {"avg", "min", "med", "max", "p(N)"},
}

func parseThreshold(m *metric, source string) (*threshold, error) {
	parts := expression.FindStringSubmatch(source)
	if parts == nil {
		return nil, fmt.Errorf("threshold %q on %s is not of the form: aggregation operator number", source, m.name)
	}
	known := parts[1]
	if percentile.MatchString(known) {
		known = "p(N)"
	}
	if !slices.Contains(aggregates[m.kind], known) {
		return nil, fmt.Errorf("threshold %q on %s: a %s has %v", source, m.name, m.kind, aggregates[m.kind])
	}
	bound, err := strconv.ParseFloat(parts[3], 64)
	if err != nil {
		return nil, fmt.Errorf("threshold %q on %s: %w", source, m.name, err)
	}
	return &threshold{source: source, metric: m, aggregate: parts[1], operator: parts[2], bound: bound}, nil
}

// judge sets failed. A rate without samples has no value and cannot fail; a
// counter without samples is 0, a trend's figures too.
func (t *threshold) judge(elapsed time.Duration) {
	value, err := t.metric.figure(t.aggregate, elapsed)
	t.failed = err == nil && !compare(value, t.operator, t.bound)
}

func compare(a float64, operator string, b float64) bool {
	switch operator {
	case "<":
		return a < b
	case "<=":
		return a <= b
	case ">":
		return a > b
	case ">=":
		return a >= b
	case "!=":
		return a != b
	default: // == and ===
		return a == b
	}
}

var errNoFigure = errors.New("no such figure")

// figure is one aggregate of a metric, for thresholds and the summary.
func (m *metric) figure(name string, elapsed time.Duration) (float64, error) {
	s, n := &m.sink, float64(len(m.sink.values))
	if p := percentile.FindStringSubmatch(name); p != nil {
		at, err := strconv.ParseFloat(p[1], 64)
		if err != nil || at > 100 {
			return 0, errNoFigure
		}
		return s.percentile(at), nil
	}
	switch {
	case name == "count" && m.kind == counter:
		return s.sum, nil
	case name == "count":
		return n, nil
	case name == "rate" && m.kind == counter:
		return s.sum / elapsed.Seconds(), nil
	case name == "rate" && n > 0:
		return s.nonZero / n, nil
	case name == "value":
		return s.last, nil
	case name == "avg" && n > 0:
		return s.sum / n, nil
	case name == "avg":
		return 0, nil
	case name == "min":
		return s.percentile(0), nil
	case name == "med":
		return s.percentile(50), nil
	case name == "max":
		return s.percentile(100), nil
	}
	return 0, errNoFigure
}
