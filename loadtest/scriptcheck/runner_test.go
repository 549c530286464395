package main

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// script runs JavaScript as a script of its own; %URL% is an API that answers 200.
func script(t *testing.T, source string, args ...string) result {
	t.Helper()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Method", r.Method)
		w.Write([]byte(`{"n": 7}`))
	}))
	defer api.Close()
	path := filepath.Join(t.TempDir(), "script.js")
	source = strings.ReplaceAll(source, "%URL%", api.URL)
	if err := os.WriteFile(path, []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), append(args, path), &stdout, &stderr)
	return result{code: code, stdout: stdout.String(), stderr: stderr.String()}
}

const oneUser = `
import exec from 'k6/execution';
import http from 'k6/http';
import { check, sleep } from 'k6';
import { Counter, Trend, Rate, Gauge } from 'k6/metrics';
import { SharedArray } from 'k6/data';
const scenario = { executor: 'per-vu-iterations', maxDuration: '1s', gracefulStop: '0s' };
`

func TestLifeCycle(t *testing.T) {
	t.Parallel()
	r := script(t, oneUser+`
		const c = new Counter('c'), list = new SharedArray('list', () => [1, 2, 3]);
		export const options = {
			scenarios: { a: { ...scenario, vus: 2, iterations: 3, exec: 'go', tags: { k: 'v' } } },
			thresholds: {
				'c{k:v}': ['count==6'], 'c{k:w}': ['count==0'], 'c{group:::teardown}': ['count==10'], iterations: ['count==6'], checks: ['rate==1'],
				http_reqs: ['count==6'], 'http_req_failed': ['rate==0'], 'http_req_duration{name:x}': ['max>0'],
			},
		};
		export function setup() { return { from: 'setup', lost: undefined, at: new Date(0) } }
		export function go(data) {
			const res = http.post('%URL%', 'x', { tags: { name: 'x' }, headers: { A: 'b' }, timeout: 2000 });
			check(res, {
				status: (r) => r.status === 200 && r.json().n === 7 && r.headers['X-Method'] === 'POST',
				data: data.from === 'setup' && !('lost' in data) && data.at === '1970-01-01T00:00:00.000Z' && list.length === 3,
				where: exec.scenario.name === 'a' && exec.scenario.iterationInTest < 6 && exec.vu.idInTest >= 1,
				when: Math.abs(exec.scenario.startTime - Date.now()) < 5000,
			});
			data.from = 'a user: the next one must not see this';
			c.add(1);
		}
		export function teardown(data) { if (data.from === 'setup') c.add(10) }
		export function handleSummary(data) { return { stdout: 'c was ' + data.metrics.c.values.count } }
	`)
	r.want(t, exitOK, "c was 16")
}

// Each is what k6 would do too, or why scriptcheck does not try.
func TestRunnerEndsWith(t *testing.T) {
	t.Parallel()
	const body = `export const options = { scenarios: { a: { ...scenario, %s } }, %s }; %s`
	for name, c := range map[string]struct {
		scenario, options, code string
		args                    []string
		want                    int
		text                    string
	}{
		"init throws":            {code: "throw new Error('in init')", want: exitException, text: "in init"},
		"setup throws":           {code: "export function setup() { throw new Error('in setup') } export function teardown() { console.log('torn down') } export default () => {}", want: exitException, text: "in setup"},
		"setup is slow":          {options: "setupTimeout: '20ms'", code: "export function setup() { sleep(30) } export default () => {}", want: exitSetupTimeout, text: "setupTimeout"},
		"setup loops":            {options: "setupTimeout: '20ms'", code: "export function setup() { for (;;); } export default () => {}", want: exitSetupTimeout, text: "setupTimeout"},
		"teardown is slow":       {options: "teardownTimeout: '20ms'", code: "export function teardown() { sleep(30) } export default () => {}", want: exitTeardownTimeout, text: "teardownTimeout"},
		"teardown throws":        {code: "export function teardown() { throw new Error('in teardown') } export default () => {}", want: exitException, text: "in teardown"},
		"a user throws":          {code: "export default () => { throw new Error('in a user') }", want: exitOK, text: "in a user"},
		"a user takes too long":  {options: "thresholds: { iterations: ['count==0'] }", code: "export default () => { try { sleep(30) } catch (e) { for (;;); } }", want: exitOK, text: "time is over"},
		"the script aborts":      {code: "export default () => exec.test.abort('enough'); export function teardown() { console.log('torn down') }", want: exitAborted, text: "torn down"},
		"handleSummary throws":   {code: "export default () => {}; export function handleSummary() { throw new Error('in summary') }", want: exitOK, text: "in summary"},
		"an async user":          {code: "export default async () => {}", want: exitOK, text: "async"},
		"too many VUs":           {scenario: "vus: 11", args: []string{"-max-vus", "10"}, code: "export default () => {}", want: exitInvalid, text: "needs 11 VUs at once"},
		"too long":               {scenario: "startTime: '1m'", args: []string{"-max-duration", "1m"}, code: "export default () => {}", want: exitInvalid, text: "may end 1m1s after the start"},
		"another host":           {code: "export default () => { http.get('http://192.0.2.1/') }", want: exitInvalid, text: "loopback"},
		"another host in setup":  {code: "export default () => {}; export function setup() { http.get('http://192.0.2.1/') }", want: exitInvalid, text: "loopback"},
		"a request in init":      {code: "http.get('%URL%'); export default () => {}", want: exitException, text: "init code"},
		"a param it hasn't":      {code: "export function setup() { http.get('%URL%', { redirects: 1 }) } export default () => {}", want: exitException, text: "params.redirects: is not in scriptcheck"},
		"a metric in a user":     {code: "export function setup() { new Counter('c') } export default () => {}", want: exitException, text: "init code"},
		"a metric of two types":  {code: "new Counter('c'); new Rate('c'); export default () => {}", want: exitException, text: "another type"},
		"a sample that is NaN":   {code: "const g = new Gauge('g'); export function setup() { g.add(NaN) } export default () => {}", want: exitException, text: "not a number"},
		"scenario state, setup":  {code: "export function setup() { exec.scenario.name } export default () => {}", want: exitException, text: "scenarios alone"},
		"an empty counter":       {options: "thresholds: { c: ['count>0'] }", code: "new Counter('c'); export default () => {}", want: exitThresholds},
		"an empty trend":         {options: "thresholds: { t: ['p(99)<1'] }", code: "new Trend('t'); export default () => {}", want: exitOK},
		"an empty rate":          {options: "thresholds: { r: ['rate==1'] }", code: "new Rate('r'); export default () => {}", want: exitOK},
		"no scenario function":   {want: exitInvalid, text: `no function "default"`},
		"setup before threshold": {options: "thresholds: { iterations: ['count>5'] }", code: "export function setup() { throw new Error('x') } export default () => {}", want: exitException},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := body
			for _, part := range []string{c.scenario, c.options, c.code} {
				source = strings.Replace(source, "%s", part, 1)
			}
			r := script(t, oneUser+source, c.args...)
			r.want(t, c.want, c.text)
			if name == "setup throws" && strings.Contains(r.stderr, "torn down") {
				t.Error("teardown ran after a setup that failed")
			}
		})
	}
}

func TestScenariosTakeTurns(t *testing.T) {
	t.Parallel()
	r := script(t, oneUser+`
		export const options = { scenarios: {
			first: { ...scenario, vus: 3 }, second: { ...scenario, vus: 3, startTime: '1001ms' } } };
		export default () => console.log(exec.scenario.name + exec.scenario.iterationInTest);
	`, "-max-vus", "3") // they never run at once, so three VUs are enough
	r.want(t, exitOK, "first0", "first2", "second0", "second2")
	if strings.LastIndex(r.stderr, "first") > strings.Index(r.stderr, "second") {
		t.Error("the second scenario began before the first had ended")
	}
}

func TestRunIsStoppedFromOutside(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	path := filepath.Join(t.TempDir(), "script.js")
	source := oneUser + `export const options = { scenarios: { a: { ...scenario, maxDuration: '1m' } } }; export default () => { console.log('here'); sleep(60) }`
	if err := os.WriteFile(path, []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	here := make(chan struct{}, 1)
	go func() { <-here; cancel() }()
	code := run(ctx, []string{path}, &bytes.Buffer{}, writerFunc(func(p []byte) {
		if bytes.Contains(p, []byte("here")) {
			here <- struct{}{}
		}
	}))
	if code != exitInterrupted {
		t.Errorf("exit code %d, want %d", code, exitInterrupted)
	}
}

type writerFunc func([]byte)

func (f writerFunc) Write(p []byte) (int, error) { f(p); return len(p), nil }

func TestFigures(t *testing.T) {
	m := &metric{kind: trend}
	for _, v := range []float64{4, 1, 3, 2} {
		m.sink.add(v)
	}
	for name, want := range map[string]float64{"min": 1, "max": 4, "avg": 2.5, "med": 2.5, "p(0)": 1, "p(100)": 4, "p(90)": 3.7, "count": 4} {
		if got, err := m.figure(name, time.Second); err != nil || got-want > 1e-9 || want-got > 1e-9 {
			t.Errorf("%s = %v, %v; want %v", name, got, err, want)
		}
	}
	c := &metric{kind: counter}
	c.sink.add(2)
	c.sink.add(3)
	if got, _ := c.figure("rate", 2*time.Second); got != 2.5 {
		t.Errorf("rate of a counter = %v, want 2.5", got)
	}
	if _, err := m.figure("p(101)", time.Second); err == nil {
		t.Error("p(101) is accepted")
	}
}

func TestThresholdExpressions(t *testing.T) {
	m := &metric{name: "m", kind: counter}
	m.sink.add(5)
	for source, wantFailed := range map[string]bool{
		"count==5": false, "count===5": false, "count != 5": true, "count>5": true, "count>=5": false,
		"count<5": true, "count<=5": false, " count < 5.5 ": false,
	} {
		th, err := parseThreshold(m, source)
		if err != nil {
			t.Errorf("%q: %v", source, err)
			continue
		}
		if th.judge(time.Second); th.failed != wantFailed {
			t.Errorf("%q on 5: failed %v, want %v", source, th.failed, wantFailed)
		}
	}
	for _, source := range []string{"", "count", "count=5", "count=<5", "p(99)<5", "value<5", "count<five", "count<5 && count>3", "count<-1"} {
		if _, err := parseThreshold(m, source); err == nil {
			t.Errorf("%q is accepted", source)
		}
	}
}

func TestCommandLine(t *testing.T) {
	const flags = "allowed are -e, -include-system-env-vars, -max-vus, -max-duration, -new-machine-readable-summary"
	for _, c := range []struct {
		args, want string
	}{
		{"", "0 scripts: allowed is one, after the flags"},
		{"a.js b.js", "2 scripts: allowed is one, after the flags"},
		{"-e novalue a.js", `"novalue" for flag -e: want NAME=value`},
		{"-e =value a.js", `"=value" for flag -e: want NAME=value`},
		{"-max-vus 0 a.js", "-max-vus is 0; allowed: 1 to 1000"},
		{"-max-vus 1001 a.js", "-max-vus is 1001; allowed: 1 to 1000"},
		{"-max-vus many a.js", `"many" for flag -max-vus`},
		{"-max-duration 0s a.js", "-max-duration is 0s; allowed: above 0, up to 10m0s"},
		{"-max-duration 1h a.js", "-max-duration is 1h0m0s; allowed: above 0, up to 10m0s"},
		{"-unknown a.js", "flag provided but not defined: -unknown: " + flags},
	} {
		var said, stdout bytes.Buffer
		if code := run(t.Context(), strings.Fields(c.args), &stdout, &said); code != exitUsage {
			t.Errorf("%q: exit code %d, want %d", c.args, code, exitUsage)
		}
		if s := said.String(); strings.Count(s, "\n") != 1 || !strings.Contains(s, c.want) || !strings.HasSuffix(s, "; scriptcheck -h says more\n") || stdout.Len() > 0 {
			t.Errorf("%q: %q, want %q", c.args, s, c.want)
		}
	}
	if code := run(t.Context(), []string{"/nonexistent/a.js"}, &bytes.Buffer{}, &bytes.Buffer{}); code != exitException {
		t.Errorf("a script that isn't there: exit code %d", code)
	}
}
