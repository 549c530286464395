package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/grafana/sobek"
)

// moduleK6 is k6: sleep, check, fail.
func (v *vu) moduleK6() *builtin {
	return newBuiltin(v.rt, map[string]any{"sleep": v.sleep, "check": v.check, "fail": v.fail})
}

func (v *vu) sleep(seconds float64) {
	if !v.ready {
		v.throw("sleep() is not for init code")
	}
	timer := time.NewTimer(time.Duration(seconds * float64(time.Second)))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-v.ctx.Done():
		v.throw("sleep: %w", context.Cause(v.ctx))
	}
}

// check runs named predicates on a value; false ones are counted, not thrown.
func (v *vu) check(value sobek.Value, sets *sobek.Object, tags map[string]string) bool {
	all := true
	for _, name := range sets.Keys() {
		result := sets.Get(name)
		if predicate, ok := sobek.AssertFunction(result); ok {
			var err error
			if result, err = predicate(sobek.Undefined(), value); err != nil {
				panic(err)
			}
		}
		passed := 0.0
		if result.ToBoolean() {
			passed = 1
		} else {
			all = false
		}
		labels := v.tagged(tags)
		labels["check"] = name
		v.test.registry.addTo("checks", passed, labels)
	}
	return all
}

// open reads a text file, in init code alone. A relative path would be relative
// to the script; here it is refused.
func (v *vu) open(path string, mode ...string) string {
	if v.ready || len(mode) > 0 || !filepath.IsAbs(path) {
		v.throw("open(%q): scriptcheck reads text, in init code, from absolute paths", path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		v.throw("open: %w", err)
	}
	return string(text)
}

func (v *vu) fail(message string) { v.throw("fail: %s", message) }

func (v *vu) console() map[string]any {
	out := map[string]any{}
	for method, level := range map[string]string{"log": "info", "info": "info", "debug": "debug", "warn": "warning", "error": "error"} {
		out[method] = func(values ...sobek.Value) {
			texts := make([]string, len(values))
			for i, value := range values {
				texts[i] = value.String()
			}
			v.cfg.logf(level, "%s", strings.Join(texts, " "))
		}
	}
	return out
}

// moduleData is k6/data: SharedArray, which here each VU has a copy of.
func (v *vu) moduleData() *builtin {
	shared := func(call sobek.ConstructorCall) *sobek.Object {
		make, ok := sobek.AssertFunction(call.Argument(1))
		if !ok || v.ready {
			v.throw("new SharedArray(name, function) belongs in init code")
		}
		list, err := make(sobek.Undefined())
		if err != nil {
			panic(err)
		}
		return list.ToObject(v.rt)
	}
	return newBuiltin(v.rt, map[string]any{"SharedArray": shared})
}
