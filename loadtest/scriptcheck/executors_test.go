package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Each executor with k6's options, told apart by what only it does. The clock is
// synctest's: it stands still while anything runs, so the counts are exact on
// any machine, and a run of two seconds takes none.
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
	for name, c := range map[string]struct {
		scenario, thresholds, code string
		ends                       time.Duration // of the whole run, on that clock
	}{
		"shared-iterations": {"executor: 'shared-iterations', vus: 3, iterations: 10, maxDuration: '5s'",
			"iterations: ['count==10'], 'c{vu:3}': ['count>0'], dropped_iterations: ['count==0']", "sleep(0.01)", 40 * time.Millisecond},
		"shared-iterations out of time": {"executor: 'shared-iterations', vus: 2, iterations: 100, maxDuration: '1s'",
			"iterations: ['count==6'], dropped_iterations: ['count==94'], 'dropped_iterations{scenario:a}': ['count==94'], 'dropped_iterations{k:v}': ['count==0']", "sleep(0.4)", 1200 * time.Millisecond},
		"per-vu-iterations out of time": {"executor: 'per-vu-iterations', vus: 2, iterations: 50, maxDuration: '1s'",
			"iterations: ['count==6'], 'c{vu:1}': ['count==3'], dropped_iterations: ['count==94']", "sleep(0.4)", 1200 * time.Millisecond},
		"constant-vus": {"executor: 'constant-vus', vus: 4, duration: '1s'",
			"iterations: ['count==40'], 'c{vu:4}': ['count==10'], here: ['max==900'], 'iterations{k:v}': ['count==40']", "sleep(0.1)", time.Second},
		"ramping-vus": {"executor: 'ramping-vus', startVUs: 0, stages: [{ target: 4, duration: '1s' }, { target: 0, duration: '1s' }], gracefulRampDown: '1s'",
			// The VUs are at work for 1.75, 1.25, 0.75 and 0.25 s: an eighth of a second after the start, and so on.
			"iterations: ['count==42'], 'c{vu:1}': ['count==18'], 'c{vu:4}': ['count==3'], 'c{vu:5}': ['count==0'], here: ['min==125', 'max==1825']", "sleep(0.1)", 2 * time.Second},
		"constant-arrival-rate": {"executor: 'constant-arrival-rate', rate: 40, duration: '1s', preAllocatedVUs: 41, maxVUs: 41",
			"iterations: ['count==41'], dropped_iterations: ['count==0'], here: ['min==0', 'med==500', 'max==1000']", "sleep(0.1)", 1100 * time.Millisecond},
		"constant-arrival-rate without VUs": {"executor: 'constant-arrival-rate', rate: 20, timeUnit: '500ms', duration: '1s', preAllocatedVUs: 2",
			// free again after 440 ms, for the arrivals at 450, 475, 900 and 925
			"iterations: ['count==6'], 'dropped_iterations{scenario:a}': ['count==35'], here: ['max==925']", "sleep(0.44)", 1365 * time.Millisecond},
		"ramping-arrival-rate": {"executor: 'ramping-arrival-rate', startRate: 0, stages: [{ target: 40, duration: '1s' }, { target: 40, duration: '1s' }], preAllocatedVUs: 62",
			// the area below the ramp is 20 + 40; half of it takes the first second and a quarter of the next
			"iterations: ['count>=60', 'count<=61'], dropped_iterations: ['count==0'], here: ['med>1200', 'med<1300']", "", 2001 * time.Millisecond},
		"gracefulStop": {"executor: 'constant-vus', vus: 2, duration: '1s', gracefulStop: '100ms'",
			"iterations: ['count==0'], c: ['count==2']", "sleep(5)", 1100 * time.Millisecond},
		"gracefulRampDown": {"executor: 'ramping-vus', startVUs: 2, stages: [{ target: 2, duration: '1s' }, { target: 0, duration: '0s' }, { target: 0, duration: '1s' }], gracefulRampDown: '100ms'",
			"iterations: ['count==0'], c: ['count==2']", "sleep(5)", 2 * time.Second}, // after gracefulStop it would be 3 s
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "script.js")
			if err := os.WriteFile(path, []byte(oneUser+fmt.Sprintf(body, c.scenario, c.thresholds, c.code)), 0o644); err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				var stdout, stderr bytes.Buffer
				began := time.Now()
				code := run(t.Context(), []string{path}, &stdout, &stderr)
				result{code: code, stdout: stdout.String(), stderr: stderr.String()}.want(t, exitOK)
				if took := time.Since(began); took != c.ends {
					t.Errorf("it ends after %v, want %v", took, c.ends)
				}
			})
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
