package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"time"

	"github.com/grafana/sobek"
)

// vu is a virtual user: a JavaScript runtime of its own, and the connections
// that it opened. It makes one call at a time.
type vu struct {
	id      int
	cfg     config
	test    *test
	rt      *sobek.Runtime
	exports *sobek.Object
	client  *http.Client

	ready     bool            // init code has run: no new metrics, requests allowed
	ctx       context.Context // of the call that is running
	tags      map[string]string
	iteration *iteration // nil outside scenarios

	expected func(status int) bool // http.setResponseCallback
}

// iteration is where in a scenario a VU is.
type iteration struct {
	scenario   *scenario
	started    time.Time // of the scenario
	inTest     int64     // counts the scenario's iterations over all VUs
	inScenario int       // counts this VU's
}

func newVU(id int, cfg config, t *test) (*vu, error) {
	v := &vu{id: id, cfg: cfg, test: t, rt: sobek.New(), client: loopbackClient(), ctx: context.Background(), expected: defaultExpected}
	must(v.rt.Set("__ENV", maps.Clone(cfg.env)))
	must(v.rt.Set("__VU", id))
	must(v.rt.Set("__ITER", 0))
	must(v.rt.Set("console", v.console()))
	must(v.rt.Set("open", v.open))
	l, err := newLoader(cfg.script, map[string]*builtin{
		"k6":           v.moduleK6(),
		"k6/http":      v.moduleHTTP(),
		"k6/metrics":   v.moduleMetrics(),
		"k6/execution": v.moduleExecution(),
		"k6/data":      v.moduleData(),
	})
	if err != nil {
		return nil, err
	}
	if v.exports, err = l.load(v.rt, cfg.script); err != nil {
		return nil, err
	}
	v.ready = true
	return v, nil
}

// function is an exported one, nil if there is none of that name.
func (v *vu) function(name string) sobek.Callable {
	fn, _ := sobek.AssertFunction(v.exports.Get(name))
	return fn
}

// call runs an exported function until it returns, throws, or ctx ends. What
// JSON can't hold does not get from one VU to another, so data is JSON.
func (v *vu) call(ctx context.Context, name string, data ...[]byte) (sobek.Value, error) {
	fn := v.function(name)
	if fn == nil {
		return nil, fmt.Errorf("the script exports no function %q", name)
	}
	var args []sobek.Value
	for _, d := range data {
		arg, err := v.parse(d)
		if err != nil {
			return nil, err
		}
		args = append(args, arg)
	}

	v.ctx = ctx
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		v.rt.Interrupt(context.Cause(ctx))
		close(interrupted)
	})
	value, err := fn(sobek.Undefined(), args...)
	if !stop() {
		<-interrupted // or it would hit the next call
	}
	v.rt.ClearInterrupt()
	v.ctx = context.Background()

	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		if thrown, ok := errors.AsType[*sobek.Exception](err); ok {
			return nil, errors.New(thrown.String())
		}
		return nil, err
	}
	if _, ok := value.Export().(*sobek.Promise); ok {
		return nil, fmt.Errorf("%s is async, which scriptcheck has not", name)
	}
	return value, nil
}

// parse makes a value of JSON; nothing at all is undefined.
func (v *vu) parse(data []byte) (sobek.Value, error) {
	if data == nil {
		return sobek.Undefined(), nil
	}
	parse, _ := sobek.AssertFunction(v.rt.GlobalObject().Get("JSON").ToObject(v.rt).Get("parse"))
	return parse(sobek.Undefined(), v.rt.ToValue(string(data)))
}

// stringify makes JSON of a value, nil of what JSON has no form for.
func (v *vu) stringify(value sobek.Value) ([]byte, error) {
	if value == nil {
		return nil, nil
	}
	stringify, _ := sobek.AssertFunction(v.rt.GlobalObject().Get("JSON").ToObject(v.rt).Get("stringify"))
	text, err := stringify(sobek.Undefined(), value)
	if err != nil || sobek.IsUndefined(text) {
		return nil, err
	}
	return []byte(text.String()), nil
}

// tagged is the VU's tags and the given ones, which win.
func (v *vu) tagged(more map[string]string) map[string]string {
	tags := map[string]string{}
	maps.Copy(tags, v.tags)
	maps.Copy(tags, more)
	return tags
}

// throw raises err in the script.
func (v *vu) throw(format string, args ...any) {
	panic(v.rt.NewGoError(fmt.Errorf(format, args...)))
}
