package main

import (
	"math"

	"github.com/grafana/sobek"
)

// moduleMetrics is k6/metrics: the four classes.
func (v *vu) moduleMetrics() *builtin {
	return newBuiltin(v.rt, map[string]any{
		"Counter": v.metricClass(counter),
		"Gauge":   v.metricClass(gauge),
		"Rate":    v.metricClass(rate),
		"Trend":   v.metricClass(trend),
	})
}

func (v *vu) metricClass(k kind) func(sobek.ConstructorCall) *sobek.Object {
	return func(call sobek.ConstructorCall) *sobek.Object {
		if v.ready {
			v.throw("metrics are declared in init code")
		}
		m, err := v.test.registry.declare(call.Argument(0).String(), k, call.Argument(1).ToBoolean())
		if err != nil {
			v.throw("%w", err)
		}
		must(call.This.Set("name", m.name))
		must(call.This.Set("add", func(value sobek.Value, tags map[string]string) {
			if !v.ready {
				v.throw("%s.add() is not for init code", m.name)
			}
			number := value.ToFloat()
			if math.IsNaN(number) || math.IsInf(number, 0) {
				v.throw("%s.add(%s): not a number", m.name, value)
			}
			v.test.registry.add(m, number, v.tagged(tags))
		}))
		return nil
	}
}
