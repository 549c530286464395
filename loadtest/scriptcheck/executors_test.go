package main

import (
	"fmt"
	"strings"
	"testing"
)

// Each executor with k6's options, told apart by what only it does.
func TestExecutors(t *testing.T) {
	t.Parallel()
	const body = `
		const here = new Trend('here'), c = new Counter('c');
		export const options = { scenarios: { a: { gracefulStop: '1s', tags: { k: 'v' }, exec: 'go', %s } }, thresholds: { %s } };
		export function go() {
			c.add(1, { vu: String(exec.vu.idInTest) });
			here.add(Date.now() - exec.scenario.startTime);
			%s
		}`
	for name, c := range map[string]struct{ scenario, thresholds, code string }{
		"shared-iterations": {"executor: 'shared-iterations', vus: 3, iterations: 10, maxDuration: '5s'",
			"iterations: ['count==10'], 'c{vu:3}': ['count>0'], dropped_iterations: ['count==0']", "sleep(0.01)"},
		"shared-iterations out of time": {"executor: 'shared-iterations', vus: 2, iterations: 100, maxDuration: '1s'",
			"iterations: ['count>=4', 'count<=8'], dropped_iterations: ['count>=92', 'count<=96'], 'dropped_iterations{scenario:a}': ['count>0'], 'dropped_iterations{k:v}': ['count==0']", "sleep(0.4)"},
		"per-vu-iterations out of time": {"executor: 'per-vu-iterations', vus: 2, iterations: 50, maxDuration: '1s'",
			"dropped_iterations: ['count>=90']", "sleep(0.4)"},
		"constant-vus": {"executor: 'constant-vus', vus: 4, duration: '1s'",
			"iterations: ['count>=16', 'count<=48'], 'c{vu:4}': ['count>=4'], here: ['max<1100'], 'iterations{k:v}': ['count>=16']", "sleep(0.1)"},
		"ramping-vus": {"executor: 'ramping-vus', startVUs: 0, stages: [{ target: 4, duration: '1s' }, { target: 0, duration: '1s' }], gracefulRampDown: '1s'",
			// the area below the ramp is 4 VU seconds
			"iterations: ['count>=15', 'count<=50'], 'c{vu:1}': ['count>0'], 'c{vu:4}': ['count>0'], 'c{vu:5}': ['count==0'], here: ['max>1200']", "sleep(0.1)"},
		"constant-arrival-rate": {"executor: 'constant-arrival-rate', rate: 40, duration: '1s', preAllocatedVUs: 41, maxVUs: 41",
			"iterations: ['count>=38', 'count<=41'], dropped_iterations: ['count==0'], here: ['min<200', 'max>900']", "sleep(0.1)"},
		"constant-arrival-rate without VUs": {"executor: 'constant-arrival-rate', rate: 20, timeUnit: '500ms', duration: '1s', preAllocatedVUs: 2",
			"iterations: ['count>=4', 'count<=8'], 'dropped_iterations{scenario:a}': ['count>=30', 'count<=37']", "sleep(0.45)"},
		"ramping-arrival-rate": {"executor: 'ramping-arrival-rate', startRate: 0, stages: [{ target: 40, duration: '1s' }, { target: 40, duration: '1s' }], preAllocatedVUs: 62",
			"iterations: ['count>=57', 'count<=62'], dropped_iterations: ['count==0']", ""},
		"gracefulStop": {"executor: 'constant-vus', vus: 2, duration: '1s', gracefulStop: '100ms'",
			"iterations: ['count==0'], c: ['count==2']", "sleep(5)"},
		"gracefulRampDown": {"executor: 'ramping-vus', startVUs: 2, stages: [{ target: 0, duration: '0s' }, { target: 0, duration: '1s' }], gracefulRampDown: '100ms'",
			"iterations: ['count==0']", "sleep(5)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script(t, oneUser+fmt.Sprintf(body, c.scenario, c.thresholds, c.code)).want(t, exitOK)
		})
	}
}

// What k6 refuses, or does in a way that scriptcheck has not.
func TestExecutorsRefuse(t *testing.T) {
	t.Parallel()
	for scenario, want := range map[string]string{
		"executor: 'externally-controlled', vus: 1, duration: '1s'":                                            "is not in scriptcheck",
		"executor: 'constant-vus', vus: 1, duration: '1s', iterations: 3":                                      `constant-vus has no "iterations"`,
		"executor: 'constant-arrival-rate', vus: 1, rate: 1, duration: '1s', preAllocatedVUs: 1":               `constant-arrival-rate has no "vus"`,
		"executor: 'constant-arrival-rate', rate: 1, duration: '1s'":                                           `needs "preAllocatedVUs"`,
		"executor: 'constant-arrival-rate', rate: 0, duration: '1s', preAllocatedVUs: 1":                       "rate and timeUnit",
		"executor: 'constant-arrival-rate', rate: 1, duration: '1s', preAllocatedVUs: 2, maxVUs: 1":            "maxVUs is at least",
		"executor: 'constant-vus', vus: 1":                                                                     `needs "duration"`,
		"executor: 'constant-vus', vus: 1, duration: '10ms'":                                                   "1s or more",
		"executor: 'ramping-vus', stages: [], startVUs: 0":                                                     "VUs and iterations",
		"executor: 'ramping-vus', stages: [{ target: -1, duration: '1s' }]":                                    "targets",
		"executor: 'shared-iterations', vus: 2, iterations: 1":                                                 "at least as many",
		"executor: 'ramping-arrival-rate', stages: [{ target: 1, duration: '1s', at: 1 }], preAllocatedVUs: 1": `unknown field "at"`,
	} {
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			script(t, oneUser+"export default () => {}; export const options = { scenarios: { a: { "+scenario+" } } }").want(t, exitInvalid, want)
		})
	}
}

func TestOpenReadsInInitCodeAlone(t *testing.T) {
	t.Parallel()
	const options = "export const options = { scenarios: { a: { ...scenario } } };"
	r := script(t, oneUser+options+"const text = open('/etc/hosts'); export default () => console.log(text.length > 0 ? 'read' : 'empty')")
	r.want(t, exitOK, "read")
	script(t, oneUser+options+"open('/nonexistent/file'); export default () => {}").want(t, exitException, "/nonexistent/file")
	script(t, oneUser+options+"export function setup() { open('/etc/hosts') } export default () => {}").want(t, exitException, "init code")
	if !strings.HasPrefix(r.stderr, "info") {
		t.Error("console.log is not at level info")
	}
}
