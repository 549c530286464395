package main

import (
	"errors"
	"time"

	"github.com/grafana/sobek"
)

var errAborted = errors.New("aborted by the script")

// moduleExecution is k6/execution: scenario, vu, test.
func (v *vu) moduleExecution() *builtin {
	rt := v.rt
	inScenario := func(get func(*iteration) any) func() any {
		return func() any {
			if v.iteration == nil {
				v.throw("exec.scenario and the VU's iterations exist in scenarios alone")
			}
			return get(v.iteration)
		}
	}
	return newBuiltin(rt, map[string]any{
		"scenario": object(rt, map[string]func() any{
			"name":            inScenario(func(i *iteration) any { return i.scenario.name }),
			"executor":        inScenario(func(i *iteration) any { return i.scenario.Executor }),
			"startTime":       inScenario(func(i *iteration) any { return float64(i.started.UnixMicro()) / 1000 }),
			"iterationInTest": inScenario(func(i *iteration) any { return i.inTest }),
			"progress": inScenario(func(i *iteration) any {
				return min(1, time.Since(i.started).Seconds()/i.scenario.length().Seconds())
			}),
		}),
		"vu": object(rt, map[string]func() any{
			"idInTest":            func() any { return v.id },
			"idInInstance":        func() any { return v.id },
			"iterationInScenario": inScenario(func(i *iteration) any { return i.inScenario }),
		}),
		"test": map[string]any{
			"abort": func(reason string) {
				v.cfg.logf("error", "test aborted: %s", reason)
				v.test.cancel(errAborted)
				v.rt.Interrupt(errAborted)
			},
		},
	})
}

// object has properties that are asked for each time they are read.
func object(rt *sobek.Runtime, properties map[string]func() any) *sobek.Object {
	o := rt.NewObject()
	for name, get := range properties {
		getter := rt.ToValue(func() sobek.Value { return rt.ToValue(get()) })
		must(o.DefineAccessorProperty(name, getter, nil, sobek.FLAG_FALSE, sobek.FLAG_TRUE))
	}
	return o
}
