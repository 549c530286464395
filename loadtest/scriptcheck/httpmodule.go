package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"time"

	"github.com/grafana/sobek"
)

const bodyLimit = 10 << 20

// statuses is what http.expectedStatuses() returns; opaque to the script.
type statuses struct{ expected func(int) bool }

func defaultExpected(status int) bool { return status >= 200 && status < 400 }

// moduleHTTP is k6/http: get, post, put, del, request, expectedStatuses, setResponseCallback.
func (v *vu) moduleHTTP() *builtin {
	withBody := func(method string) any {
		return func(url string, body, params sobek.Value) sobek.Value { return v.request(method, url, body, params) }
	}
	return newBuiltin(v.rt, map[string]any{
		"get":     func(url string, params sobek.Value) sobek.Value { return v.request("GET", url, nil, params) },
		"post":    withBody("POST"),
		"put":     withBody("PUT"),
		"del":     withBody("DELETE"),
		"request": v.request,

		"expectedStatuses": v.expectedStatuses,
		"setResponseCallback": func(s *statuses) {
			if s == nil {
				v.throw("setResponseCallback(null) is not in scriptcheck")
			}
			v.expected = s.expected
		},
	})
}

func (v *vu) expectedStatuses(list ...sobek.Value) *statuses {
	type span struct{ Min, Max int }
	var spans []span
	for _, item := range list {
		if code, ok := item.Export().(int64); ok {
			spans = append(spans, span{int(code), int(code)})
			continue
		}
		o := item.ToObject(v.rt)
		low, high := o.Get("min"), o.Get("max")
		if low == nil || high == nil {
			v.throw("expectedStatuses: want numbers or {min, max}, got %s", item)
		}
		spans = append(spans, span{int(low.ToInteger()), int(high.ToInteger())})
	}
	return &statuses{func(status int) bool {
		for _, s := range spans {
			if s.Min <= status && status <= s.Max {
				return true
			}
		}
		return false
	}}
}

// params are those of a request that scriptcheck knows; others are refused.
type params struct {
	headers  map[string]string
	tags     map[string]string
	timeout  time.Duration
	expected func(int) bool
}

func (v *vu) params(value sobek.Value) params {
	p := params{timeout: time.Minute, expected: v.expected}
	if value == nil || sobek.IsUndefined(value) || sobek.IsNull(value) {
		return p
	}
	o := value.ToObject(v.rt)
	for _, key := range o.Keys() {
		var err error
		switch item := o.Get(key); key {
		case "headers":
			err = v.rt.ExportTo(item, &p.headers)
		case "tags":
			err = v.rt.ExportTo(item, &p.tags)
		case "timeout":
			text := item.String()
			if ms, numeric := strconv.ParseFloat(text, 64); numeric == nil {
				p.timeout = time.Duration(ms * float64(time.Millisecond))
			} else {
				p.timeout, err = time.ParseDuration(text)
			}
		case "responseCallback":
			s, ok := item.Export().(*statuses)
			if !ok {
				err = errors.New("want what expectedStatuses() returns")
				break
			}
			p.expected = s.expected
		default:
			err = errors.New("is not in scriptcheck")
		}
		if err != nil {
			v.throw("params.%s: %w", key, err)
		}
	}
	return p
}

// request sends one request. No answer is status 0 and an error text, as in k6;
// an address that isn't loopback ends the whole run.
func (v *vu) request(method, url string, body, options sobek.Value) sobek.Value {
	if !v.ready {
		v.throw("requests are not for init code")
	}
	p := v.params(options)
	answer, err := v.send(method, url, v.bodyText(body), p)
	if errors.Is(err, errNotLoopback) {
		v.test.cancel(err)
		v.throw("%w", err)
	}
	if v.ctx.Err() != nil {
		v.throw("request: %w", context.Cause(v.ctx))
	}
	if err != nil {
		answer.errorText = err.Error()
		v.cfg.logf("warning", "request failed: %v", err)
	}
	v.count(method, url, answer, p)
	return v.response(method, url, answer)
}

func (v *vu) bodyText(body sobek.Value) string {
	if body == nil || sobek.IsUndefined(body) || sobek.IsNull(body) {
		return ""
	}
	if _, ok := body.Export().(string); !ok {
		v.throw("a request body is a string here")
	}
	return body.String()
}

// answer is a response that has been read, or why there is none.
type answer struct {
	status    int
	header    http.Header
	body      string
	errorText string
	took      time.Duration // without the time to connect
}

func (v *vu) send(method, url, body string, p params) (answer, error) {
	ctx, cancel := context.WithTimeout(v.ctx, p.timeout)
	defer cancel()
	started := time.Now()
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { started = time.Now() }})
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		v.throw("request: %w", err)
	}
	for name, value := range p.headers {
		req.Header.Set(name, value)
	}
	res, err := v.client.Do(req)
	if err != nil {
		return answer{took: time.Since(started)}, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, bodyLimit))
	if err != nil {
		return answer{took: time.Since(started)}, fmt.Errorf("body: %w", err)
	}
	return answer{status: res.StatusCode, header: res.Header, body: string(text), took: time.Since(started)}, nil
}

func (v *vu) count(method, url string, a answer, p params) {
	expected := a.status != 0 && p.expected(a.status)
	tags := map[string]string{
		"method": method, "name": url, "status": strconv.Itoa(a.status), "expected_response": strconv.FormatBool(expected),
	}
	for key, value := range p.tags {
		tags[key] = value
	}
	tags = v.tagged(tags)
	failed := 1.0
	if expected {
		failed = 0
	}
	v.test.registry.addTo("http_reqs", 1, tags)
	v.test.registry.addTo("http_req_failed", failed, tags)
	v.test.registry.addTo("http_req_duration", milliseconds(a.took), tags)
}

// response is what the script gets: the fields of k6's Response that scriptcheck has.
func (v *vu) response(method, url string, a answer) sobek.Value {
	headers := v.rt.NewObject()
	for name, values := range a.header {
		must(headers.Set(name, strings.Join(values, ", ")))
	}
	o := v.rt.NewObject()
	must(o.Set("status", a.status))
	must(o.Set("url", url))
	must(o.Set("request", map[string]any{"method": method, "url": url}))
	must(o.Set("headers", headers))
	must(o.Set("error", a.errorText))
	must(o.Set("error_code", 0))
	must(o.Set("timings", map[string]any{"duration": milliseconds(a.took)}))
	must(o.Set("json", func(call sobek.FunctionCall) sobek.Value {
		if len(call.Arguments) > 0 {
			v.throw("json(selector) is not in scriptcheck")
		}
		value, err := v.parse([]byte(a.body))
		if err != nil {
			panic(err)
		}
		return value
	}))
	must(o.Set("body", a.body))
	if a.status == 0 {
		must(o.Set("body", sobek.Null()))
		must(o.Set("error_code", 1000))
	}
	return o
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
