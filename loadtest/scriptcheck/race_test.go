package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const raceScript = "../race.js"

// result is what a run left behind.
type result struct {
	code           int
	stdout, stderr string
	out            string // the folder
	report         report
}

// report is <OUT>/<script>.json.
type report struct {
	Failed  []string `json:"failed_thresholds"`
	Faults  []string `json:"faults"`
	Remarks []string `json:"remarks"`
	Judged  []struct {
		Metric string `json:"metric"`
		OK     *bool  `json:"ok"`
	} `json:"thresholds"`
	Rows []struct {
		Variant  string   `json:"variant"`
		Model    string   `json:"model"`
		Users    int      `json:"users"`
		Stock    int      `json:"stock"`
		Attempts *int     `json:"attempts"`
		Accepted *int     `json:"accepted"`
		SoldOut  *int     `json:"sold_out"`
		Busy     *int     `json:"busy"`
		GaveUp   *int     `json:"gave_up"`
		Oversold *int     `json:"oversold"`
		Rate     *float64 `json:"oversell_rate"`
		Unsold   *int     `json:"unsold"`
		Lost     *int     `json:"lost_updates"`
		Rejected *int     `json:"rejected"`
		Settled  *bool    `json:"settled"`
		PerS     *float64 `json:"accepted_per_s"`
		P99      *float64 `json:"p99_ms"`
		WaitP99  *float64 `json:"lock_wait_p99_ms"`
		Label    string   `json:"label"`
		Offered  *int     `json:"rate"`
		Dropped  *int     `json:"dropped_iterations"`
		Planned  *int     `json:"planned"`
		Started  *int     `json:"started"`
	} `json:"rows"`
}

// race runs a script like race.js, small and quick unless env says otherwise.
func race(t *testing.T, script, url string, env ...string) result {
	t.Helper()
	return execScript(t, script, append([]string{
		"BASE_URL=" + url, "ADMIN_TOKEN=" + fakeToken, "VARIANTS=atomic",
		"USERS=12", "STOCK=5", "LEAD_MS=50", "RETRY_MS=20000", "TIMEOUT_MS=20000", "AUDIT_WAIT_S=5",
	}, env...)...)
}

// execScript runs a script; what begins with a - is a flag, the rest settings.
func execScript(t *testing.T, script string, env ...string) result {
	t.Helper()
	r := result{out: t.TempDir()}
	args := []string{"-e", "OUT=" + r.out}
	for _, e := range env {
		if strings.HasPrefix(e, "-") {
			args = append(args, e)
		} else {
			args = append(args, "-e", e)
		}
	}
	var stdout, stderr bytes.Buffer
	r.code = run(t.Context(), append(args, script), &stdout, &stderr)
	r.stdout, r.stderr = stdout.String(), stderr.String()
	name := strings.TrimSuffix(filepath.Base(script), ".js")
	if data, err := os.ReadFile(filepath.Join(r.out, name+".json")); err == nil {
		if err := json.Unmarshal(data, &r.report); err != nil {
			t.Fatalf("%s.json: %v\n%s", name, err, data)
		}
	}
	return r
}

func (r result) want(t *testing.T, code int, texts ...string) {
	t.Helper()
	if r.code != code {
		t.Errorf("exit code %d, want %d", r.code, code)
	}
	for _, text := range texts {
		if !strings.Contains(r.stdout+r.stderr, text) {
			t.Errorf("output has no %q", text)
		}
	}
	if t.Failed() {
		t.Logf("stdout:\n%s\nstderr:\n%s", r.stdout, r.stderr)
	}
}

func TestRacePassesWhenTheAPIKeepsItsContract(t *testing.T) {
	t.Parallel()
	api := newFakeAPI(t)
	api.busyFirst = true
	r := race(t, raceScript, api.URL, "VARIANTS=none,setnx,atomic", "RETRY_MS=4000", "TIMEOUT_MS=4000")
	r.want(t, exitOK, "Every threshold holds", "5 of 5", "8 of 5", "37.5 %")
	if len(r.report.Rows) != 3 {
		t.Fatalf("%d rows, want 3", len(r.report.Rows))
	}
	for i, row := range r.report.Rows {
		wantAccepted, wantOversold := 5, 0
		if row.Variant == "none" {
			wantAccepted, wantOversold = 8, 3
		}
		if row.Variant != []string{"none", "setnx", "atomic"}[i] || row.Model != "race" || row.Users != 12 || row.Stock != 5 {
			t.Errorf("row %d is of %+v", i, row)
		}
		for name, c := range map[string]struct {
			got  *int
			want int
		}{
			"attempts": {row.Attempts, 24}, "accepted": {row.Accepted, wantAccepted},
			"sold_out": {row.SoldOut, 12 - wantAccepted}, "busy": {row.Busy, 12}, "gave_up": {row.GaveUp, 0}, "oversold": {row.Oversold, wantOversold},
			"lost_updates": {row.Lost, wantOversold}, "rejected": {row.Rejected, wantOversold}, "unsold": {row.Unsold, 0},
		} {
			if c.got == nil || *c.got != c.want {
				t.Errorf("%s: %s is %v, want %d", row.Variant, name, deref(c.got), c.want)
			}
		}
		if row.Settled == nil || !*row.Settled {
			t.Errorf("%s: settled is %v", row.Variant, deref(row.Settled))
		}
		if row.PerS == nil || *row.PerS <= 0 || row.P99 == nil || *row.P99 <= 0 {
			t.Errorf("%s: accepted/s %v, p99 %v", row.Variant, deref(row.PerS), deref(row.P99))
		}
		if locked := row.Variant == "setnx"; locked != (row.WaitP99 != nil) {
			t.Errorf("%s: lock wait %v", row.Variant, deref(row.WaitP99))
		}
	}
}

func TestRaceReadsTheNewerShapeOfSummary(t *testing.T) {
	t.Parallel()
	r := race(t, raceScript, newFakeAPI(t).URL, "-new-machine-readable-summary")
	r.want(t, exitOK, "5 of 5", "Every threshold holds")
	if row := r.report.Rows[0]; row.Accepted == nil || *row.Accepted != 5 || row.P99 != nil {
		t.Errorf("accepted %v, p99 %v; want 5, none", deref(row.Accepted), deref(row.P99))
	}
}

// What a race must notice: each is a fault of the API under test.
func TestRaceFailsThresholds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sabotage func(*fakeAPI)
		env      []string
		want     string
	}{
		"none declared safe":             {env: []string{"VARIANTS=none", "UNSAFE="}, want: "fs_oversold{variant:none} count==0 (count was 3)"},
		"a safe variant oversells":       {sabotage: func(a *fakeAPI) { a.extra["atomic"] = 1 }, want: "fs_oversold{variant:atomic} count==0 (count was 1)"},
		"a safe variant leaves a unit":   {sabotage: func(a *fakeAPI) { a.short["atomic"] = 1 }, want: "fs_unsold{variant:atomic} count==0 (count was 1)"},
		"none does not oversell":         {sabotage: func(a *fakeAPI) { a.extra["none"] = 0 }, env: []string{"VARIANTS=none"}, want: "fs_oversold{variant:none} count>0 (count was 0)"},
		"purchases answered 503":         {sabotage: func(a *fakeAPI) { a.brokenSale = true }, want: "fs_purchases{variant:atomic,outcome:failed} count==0 (count was 12)"},
		"audits answered 503":            {sabotage: func(a *fakeAPI) { a.brokenAuds = true }, want: "fs_audits count==1 (count was 0)"},
		"users give up":                  {sabotage: func(a *fakeAPI) { a.busyFirst = true }, env: []string{"RETRY_MS=0"}, want: "fs_accepted{variant:atomic} count==5 (count was 0)"},
		"an audit that has not settled":  misreports("settled", false, "fs_settled{variant:atomic} count==1 (count was 0)"),
		"an audit of another sale":       misreports("sale_id", "another", "fs_audit_faults{variant:atomic} count==0 (count was 1)"),
		"an audit of another stock":      misreports("initial", 6, "fs_audit_faults{variant:atomic} count==0 (count was 1)"),
		"an audit that hides a purchase": misreports("accepted", 4, "fs_accepted{variant:atomic} count==5 (count was 4)"),
		"a purchase lost on its way":     misreports("persisted", 4, "fs_persisted{variant:atomic} count==5 (count was 4)"),
		"a purchase in the ledger twice": misreports("duplicates", 1, "fs_duplicates{variant:atomic} count==0 (count was 1)"),
		"a unit sold to nobody":          misreports("undersold", 1, "fs_undersold{variant:atomic} count==0 (count was 1)"),
		"a sale that Redis has lost":     misreports("redis_lost", true, "fs_audit_faults{variant:atomic} count==0 (count was 1)"),
		"a figure that is no number":     misreports("oversold", "0", "fs_audits count==1 (count was 0)"),
		"a figure that is missing":       misreports("in_flight", nil, "fs_audits count==1 (count was 0)"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := newFakeAPI(t)
			if c.sabotage != nil {
				c.sabotage(api)
			}
			race(t, raceScript, api.URL, c.env...).want(t, exitThresholds, c.want)
		})
	}
}

func misreports(field string, value any, want string) (c struct {
	sabotage func(*fakeAPI)
	env      []string
	want     string
}) {
	c.sabotage = func(a *fakeAPI) { a.misreport = func(audit map[string]any) { audit[field] = value } }
	c.want = want
	return c
}

// What a check must notice: each is a fault of the script.
func TestRaceScriptThatIsBroken(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		old, new string
		code     int
		want     string
	}{
		"users that do nothing":        {"export function buy(data) {", "export function buy(data) { return;", exitThresholds, "fs_purchases count==12 (count was 0)"},
		"users that throw":             {"export function buy(data) {", "export function buy(data) { throw new Error('x');", exitThresholds, "fs_purchases count==12 (count was 0)"},
		"a teardown that does nothing": {"export function teardown(data) {", "export function teardown(data) { return;", exitThresholds, "fs_audits count==1 (count was 0)"},
		"a threshold on no metric":     {"t.must('http_req_failed'", "t.must('http_req_faild'", exitInvalid, `no metric "http_req_faild"`},
		"a threshold that is none":     {"'rate==0'", "'rate=0'", exitInvalid, `"rate=0"`},
		"an aggregation it hasn't":     {"'rate==0'", "'p(99)==0'", exitInvalid, "a rate has [rate]"},
		"a function that isn't there":  {"exec: 'buy'", "exec: 'sell'", exitInvalid, `no function "sell"`},
		"an option that isn't one":     {"summaryTrendStats", "summaryTrendStat", exitInvalid, "summaryTrendStat"},
		"an executor that isn't one":   {"'per-vu-iterations'", "'per-vu-iteration'", exitInvalid, "per-vu-iteration"},
		"a remote import":              {"'k6/execution'", "'https://127.0.0.1/x.js'", exitException, "https://127.0.0.1/x.js"},
		"a k6 module that isn't one":   {"'k6/execution'", "'k6/executions'", exitException, "k6/executions"},
		"a syntax error":               {"export const options", "export cost options", exitException, "SyntaxError"},
		"a name that isn't exported":   {"{ sleep }", "{ slep }", exitException, "slep"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			race(t, mutated(t, c.old, c.new), newFakeAPI(t).URL).want(t, c.code, c.want)
		})
	}
}

// mutated is a copy of a script and its library with places changed: old, new, old, new ...
func mutated(t *testing.T, old, new string) string {
	t.Helper()
	return mutatedScript(t, "race.js", old, new)
}

func mutatedScript(t *testing.T, name string, oldNew ...string) string {
	t.Helper()
	source, err := os.ReadFile("../" + name)
	if err != nil {
		t.Fatal(err)
	}
	text := string(source)
	for pair := range slices.Chunk(oldNew, 2) {
		if !strings.Contains(text, pair[0]) {
			t.Fatalf("%s has no %q", name, pair[0])
		}
		text = strings.Replace(text, pair[0], pair[1], 1)
	}
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "lib"), os.DirFS("../lib")); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRaceRefusesBadSettingsBeforeItSendsAnything(t *testing.T) {
	t.Parallel()
	api := newFakeAPI(t)
	for _, c := range []struct{ env, want string }{
		{"ADMIN_TOKEN=", "ADMIN_TOKEN is not set; allowed: the admin token"},
		{"ADMIN_TOKEN=two words", "ADMIN_TOKEN is not usable"},
		{"BASE_URL=127.0.0.1:8080", `BASE_URL is "127.0.0.1:8080"; allowed: a URL`},
		{"BASE_URL=http://127.0.0.1:8080/v1", "allowed: a URL of scheme, host and port"},
		{"VARIANTS=", `VARIANTS is ""; allowed: distinct names`},
		{"VARIANTS=setnx,setnx", `VARIANTS is "setnx,setnx"`},
		{"VARIANTS=none,watchdog:2", `VARIANTS is "none,watchdog:2"`},
		{"UNSAFE=All", `UNSAFE is "All"`},
		{"REPORT_NAME=a/b", `REPORT_NAME is "a/b"; allowed: a file name`},
		{"USERS=abc", `USERS is "abc"; allowed: a whole number from 2 to 20000`},
		{"USERS=-1", `USERS is "-1"`},
		{"USERS=1e3", `USERS is "1e3"`},
		{"USERS=5", "USERS is 5 and STOCK 5; a race needs more users than units"},
		{"STOCK=0", `STOCK is "0"; allowed: a whole number from 1`},
		{"STOCK=", `STOCK is ""`},
		{"LEAD_MS=0", `LEAD_MS is "0"`},
		{"RETRY_MS=99999999", `RETRY_MS is "99999999"`},
		{"TIMEOUT_MS=5s", `TIMEOUT_MS is "5s"`},
		{"AUDIT_WAIT_S=61", `AUDIT_WAIT_S is "61"; allowed: a whole number from 0 to 60`},
	} {
		r := race(t, raceScript, api.URL, c.env)
		r.want(t, exitException, c.want)
		if strings.Contains(r.stdout+r.stderr, "two words") {
			t.Error("the token is in the output")
		}
	}
	r := race(t, raceScript, api.URL, "USERS=x", "STOCK=y")
	r.want(t, exitException, `USERS is "x"`, `STOCK is "y"`)
	if api.requests != 0 {
		t.Errorf("%d requests were sent", api.requests)
	}
}

func TestRaceWithoutAnAPI(t *testing.T) {
	t.Parallel()
	api := newFakeAPI(t)
	url := api.URL
	api.Close()
	// setup throws: no users, no teardown, yet a summary
	race(t, raceScript, url).want(t, exitException, "no answer", "connection refused", "- of 5", "fs_audits count==1 (count was 0)")
}

func TestRaceWithAWrongToken(t *testing.T) {
	t.Parallel()
	race(t, raceScript, newFakeAPI(t).URL, "ADMIN_TOKEN=wrong").want(t, exitException, "status 401", "unauthorized")
}

// Which variants there are is known to the API alone; setup fails with its words.
func TestRaceOfAVariantThatIsNotOffered(t *testing.T) {
	t.Parallel()
	race(t, raceScript, newFakeAPI(t).URL, "VARIANTS=atomic,redisson").want(t, exitException, "status 422", "one of none, setnx, watchdog, atomic")
}

func TestRaceStopsWithTheAPI(t *testing.T) {
	t.Parallel()
	api := newFakeAPI(t)
	handler := api.Config.Handler
	api.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/purchases") || strings.HasSuffix(r.URL.Path, "/audit") {
			panic(http.ErrAbortHandler) // the connection ends without an answer
		}
		handler.ServeHTTP(w, r)
	})
	race(t, raceScript, api.URL).want(t, exitThresholds,
		"fs_purchases{variant:atomic,outcome:failed} count==0 (count was 12)", "fs_audits count==1 (count was 0)")
}

func TestRaceGoesOnWithoutAnOutFolder(t *testing.T) {
	t.Parallel()
	race(t, raceScript, newFakeAPI(t).URL, "OUT=/nonexistent/folder").want(t, exitOK, "/nonexistent/folder/race.json", "5 of 5")
}

func deref[T any](p *T) any {
	if p == nil {
		return nil
	}
	return *p
}
