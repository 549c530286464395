package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// summarize calls handleSummary, if there is one, and writes what it returns.
// Without one only the failed thresholds are printed.
func (t *test) summarize(ctx context.Context, elapsed time.Duration) error {
	v, err := newVU(0, t.cfg, t)
	if err != nil {
		return err
	}
	if v.function("handleSummary") == nil {
		for _, th := range t.thresholds {
			if th.failed {
				t.cfg.logf("error", "threshold failed: %s %s", th.metric.name, th.source)
			}
		}
		return nil
	}
	shape := t.byName
	if t.cfg.machineReadable {
		shape = t.asList
	}
	data, err := json.Marshal(shape(elapsed))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	value, err := v.call(ctx, "handleSummary", data)
	if err != nil {
		return err
	}
	var outputs map[string]string
	if err := v.rt.ExportTo(value, &outputs); err != nil {
		return fmt.Errorf("want an object of file names and texts: %w", err)
	}
	t.cfg.write(outputs)
	return nil
}

// byName is the data's usual shape: metrics by name, with their thresholds.
func (t *test) byName(elapsed time.Duration) map[string]any {
	metrics := map[string]any{}
	for _, m := range t.registry.sorted() {
		entry := map[string]any{"type": m.kind, "contains": m.contains(), "values": m.values(t.options.SummaryTrendStats, elapsed)}
		judged := map[string]any{}
		for _, th := range t.thresholds {
			if th.metric == m {
				judged[th.source] = map[string]any{"ok": !th.failed}
			}
		}
		if len(judged) > 0 {
			entry["thresholds"] = judged
		}
		metrics[m.name] = entry
	}
	return map[string]any{
		"metrics": metrics,
		"options": map[string]any{"summaryTrendStats": t.options.SummaryTrendStats},
		"state":   map[string]any{"testRunDurationMs": milliseconds(elapsed)},
	}
}

// asList is the newer shape: a list below results, whose trends have neither
// p(99) nor any other percentile that k6 does not print by default.
func (t *test) asList(elapsed time.Duration) map[string]any {
	var list []any
	for _, m := range t.registry.sorted() {
		list = append(list, map[string]any{
			"name": m.name, "type": m.kind, "contains": m.contains(),
			"values": m.values([]string{"avg", "min", "med", "max", "p(90)", "p(95)"}, elapsed),
		})
	}
	return map[string]any{
		"config":  map[string]any{"duration": elapsed.Seconds(), "execution": "local", "script": t.cfg.script},
		"results": map[string]any{"metrics": list},
	}
}

func (m *metric) contains() string {
	if m.isTime {
		return "time"
	}
	return "default"
}

// values is what a summary shows of a metric.
func (m *metric) values(trendStats []string, elapsed time.Duration) map[string]float64 {
	names := map[kind][]string{counter: {"count", "rate"}, gauge: {"value", "min", "max"}, rate: {"rate"}, trend: trendStats}[m.kind]
	values := map[string]float64{}
	for _, name := range names {
		if figure, err := m.figure(name, elapsed); err == nil {
			values[name] = figure
		}
	}
	if m.kind == rate {
		values["passes"] = m.sink.nonZero
		values["fails"] = float64(len(m.sink.values)) - m.sink.nonZero
	}
	return values
}
