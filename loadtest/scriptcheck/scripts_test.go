package main

import (
	"strings"
	"testing"
	"time"
)

// small are the settings with which each script ends soon.
var small = map[string][]string{
	"race.js":           {"VARIANTS=atomic", "USERS=12", "STOCK=5", "LEAD_MS=50", "RETRY_MS=300", "TIMEOUT_MS=20000"},
	"capacity.js":       {"VARIANT=atomic", "RATES=20", "DURATION=1s", "WARM_UP=1s", "PAUSE=0s", "VUS=30", "TIMEOUT_MS=3000"},
	"article-100x5m.js": {"VARIANT=watchdog", "DURATION=1s", "USERS=4", "SKUS=2", "WORK_MIN_MS=50", "WORK_MAX_MS=60"},
	"soak.js":           {"VARIANT=atomic", "DURATION=5s", "USERS=2", "PAUSE_MS=100"},
	"smoke.js":          {"VARIANT=watchdog", "BUSY_WORK_MS=100"},
}

// A script that does nothing must not pass for want of anything to fail.
func TestScriptsThatAreBroken(t *testing.T) {
	t.Parallel()
	type fault struct {
		name, old, new, text string
		code                 int
	}
	faults := map[string][]fault{}
	for script, users := range map[string]string{
		"race.js": "buy(data)", "capacity.js": "arrive(data)", "article-100x5m.js": "buyAgain(data)", "soak.js": "buyNow(data)", "smoke.js": "answers({ run, open, later })",
	} {
		faults[script] = []fault{
			{"users that do nothing", "export function " + users + " {", "export function " + users + " { pause(0.05); return;", "count was 0", exitThresholds},
			{"a teardown that does nothing", "export function teardown(data) {", "export function teardown(data) { return;", "fs_audits", exitThresholds},
			{"a threshold on no metric", "t.must('http_req_failed'", "t.must('fs_nothing'", `no metric "fs_nothing"`, exitInvalid},
			{"a misspelt tag", "t.must('http_req_failed', {}, 'rate==0')", "t.must('fs_attempts', { varient: 'x' }, 'count>0').must('http_req_failed', {}, 'rate==0')",
				"fs_attempts{varient:x} count>0 (count was 0)", exitThresholds},
			{"a setup that throws", "export function setup() {", "export function setup() { throw new Error('no setup');", "no setup", exitException},
		}
	}
	for script, list := range faults {
		for _, f := range list {
			t.Run(script+"/"+f.name, func(t *testing.T) {
				t.Parallel()
				execScript(t, mutatedScript(t, script, f.old, f.new, "// @ts-check", "import { sleep as pause } from 'k6';"), append([]string{"BASE_URL=" + newFakeAPI(t).URL, "ADMIN_TOKEN=" + fakeToken}, small[script]...)...).
					want(t, f.code, f.text)
			})
		}
	}
}

// Settings are checked before anything is sent.
func TestScriptsRefuseBadSettings(t *testing.T) {
	t.Parallel()
	api := newFakeAPI(t)
	for _, c := range []struct{ script, env, want string }{
		{"capacity.js", "RATES=20,10", `RATES is "20,10"; allowed: whole numbers from 1 to 100000, separated by commas, growing`},
		{"capacity.js", "RATES=", `RATES is ""`},
		{"capacity.js", "RATES=10,x", `RATES is "10,x"`},
		{"capacity.js", "DURATION=20", `DURATION is "20"; allowed: a duration as 90s or 1h30m, from 1s to 60m`},
		{"capacity.js", "DURATION=500ms", `DURATION is "500ms"`},
		{"capacity.js", "VUS=0", `VUS is "0"`},
		{"capacity.js", "VARIANT=none,atomic", `VARIANT is "none,atomic"; allowed: the name of one variant`},
		{"article-100x5m.js", "SKUS=0", `SKUS is "0"`},
		{"article-100x5m.js", "SKUS=5", "USERS is 4 and SKUS 5; every item needs a user"},
		{"article-100x5m.js", "WORK_MIN_MS=61", "WORK_MIN_MS is 61 and WORK_MAX_MS 60"},
		{"soak.js", "DURATION=1m30", `DURATION is "1m30"`},
		{"soak.js", "DURATION=4s999ms", `DURATION is "4s999ms"`},
		{"smoke.js", "BUSY_WORK_MS=10001", `BUSY_WORK_MS is "10001"`},
		{"smoke.js", "ADMIN_TOKEN=", "ADMIN_TOKEN is not set"},
	} {
		env := append([]string{"BASE_URL=" + api.URL, "ADMIN_TOKEN=" + fakeToken}, append(small[c.script], c.env)...)
		execScript(t, "../"+c.script, env...).want(t, exitException, c.want)
	}
	if api.requests != 0 {
		t.Errorf("%d requests were sent", api.requests)
	}
}

// An API that is too slow for the rate: k6 drops iterations, and the report
// says that the percentiles leave them out.
func TestCapacityShowsDroppedIterations(t *testing.T) {
	t.Parallel()
	api := newFakeAPI(t)
	api.slow = 100 * time.Millisecond // 10/s at most
	r := execScript(t, "../capacity.js", append([]string{"BASE_URL=" + api.URL, "ADMIN_TOKEN=" + fakeToken}, append(small["capacity.js"], "RATES=2,40", "VUS=3")...)...)
	r.want(t, exitOK, "of 40 arrivals were not sent, since all 3 VUs were waiting")
	r.wantFiles(t, "capacity", 2)
	if row := r.report.Rows[1]; row.Dropped == nil || *row.Dropped < 10 || row.Started == nil || *row.Started+*row.Dropped < 38 {
		t.Errorf("dropped %v, started %v of 40", deref(row.Dropped), deref(row.Started))
	}
	// at the lowest rate it is a failure: then nothing was measured at all
	r = execScript(t, "../capacity.js", append([]string{"BASE_URL=" + api.URL, "ADMIN_TOKEN=" + fakeToken}, append(small["capacity.js"], "RATES=40", "VUS=3")...)...)
	r.want(t, exitThresholds, "dropped_iterations{scenario:at-40} count<=1")
}

// The safe and the unsafe in every script that sells.
func TestOversellIsNoticedByEveryScript(t *testing.T) {
	t.Parallel()
	for _, script := range []string{"race.js", "capacity.js", "article-100x5m.js", "soak.js"} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			api := newFakeAPI(t)
			api.misreport = func(audit map[string]any) {
				audit["remaining"] = audit["remaining"].(int) + 2 // two units of those accepted are still there
				audit["lost_updates"] = 2
			}
			variant := strings.TrimPrefix(strings.TrimPrefix(small[script][0], "VARIANTS="), "VARIANT=")
			execScript(t, "../"+script, append([]string{"BASE_URL=" + api.URL, "ADMIN_TOKEN=" + fakeToken}, small[script]...)...).
				want(t, exitThresholds, "fs_lost_updates{variant:"+variant)
		})
	}
}
