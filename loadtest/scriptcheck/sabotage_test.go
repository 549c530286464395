package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

// sabotage is a proxy before flashsale that changes answers.
type sabotage struct {
	script string
	env    []string
	change func(res *http.Response, body []byte) []byte
	want   string // a threshold that must fail
}

func (s sabotage) proxy(t *testing.T, target string) string {
	to, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.ModifyResponse = func(res *http.Response) error {
		body, err := io.ReadAll(res.Body)
		if err != nil {
			return err
		}
		body = s.change(res, body)
		res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		res.Header.Set("Content-Length", strconv.Itoa(len(body)))
		return nil
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	return server.URL
}

func purchase(res *http.Response) bool {
	return res.Request.Method == http.MethodPost && strings.HasSuffix(res.Request.URL.Path, "/purchases")
}

func outcome(res *http.Response, name string) bool {
	return purchase(res) && res.Header.Get("X-Outcome") == name
}

var sabotagedAnswers = map[string]sabotage{
	"an outcome that isn't said": {script: "smoke.js", want: "fs_outcomes{variant:watchdog,case:nothing-left,outcome:sold_out} count==1 (count was 0)",
		change: func(res *http.Response, body []byte) []byte { res.Header.Del("X-Outcome"); return body }},
	"a status that isn't the code's": {script: "smoke.js", want: "fs_outcomes{variant:watchdog,case:two-at-one-lock-the-other,outcome:busy} count==1 (count was 0)",
		change: func(res *http.Response, body []byte) []byte {
			if outcome(res, "busy") {
				res.StatusCode = http.StatusConflict
			}
			return body
		}},
	"a replay that is a new purchase": {script: "smoke.js", want: "fs_outcomes{variant:watchdog,case:buy-again-same-key,outcome:accepted} count==1 (count was 0)",
		change: newID()},
	"a replay that is a new purchase, soak": {script: "soak.js", env: []string{"VARIANT=atomic", "DURATION=5s", "USERS=2", "PAUSE_MS=50"},
		want: "fs_replay_faults{variant:atomic} count==0", change: newID()},
	"a token that isn't asked for": {script: "smoke.js", want: "fs_outcomes{variant:watchdog,case:create-without-the-token,outcome:unauthorized} count==1 (count was 0)",
		change: func(res *http.Response, body []byte) []byte {
			if res.StatusCode == http.StatusUnauthorized {
				res.StatusCode = http.StatusCreated
			}
			return body
		}},
	"no word of the lock": {script: "article-100x5m.js", env: []string{"DURATION=1s", "USERS=2", "SKUS=2", "WORK_MIN_MS=20", "WORK_MAX_MS=60"},
		want:   "fs_acquisitions{variant:watchdog} count>=2 (count was 0)",
		change: func(res *http.Response, body []byte) []byte { res.Header.Del("Server-Timing"); return body }},
	"an audit that never comes": {script: "capacity.js", env: []string{"RATES=20", "DURATION=1s", "WARM_UP=1s", "PAUSE=0s", "VUS=30", "TIMEOUT_MS=4000"},
		want: "fs_audits{variant:atomic,step:at-20} count==1 (count was 0)",
		change: func(res *http.Response, body []byte) []byte {
			if strings.HasSuffix(res.Request.URL.Path, "/audit") {
				res.StatusCode = http.StatusServiceUnavailable
			}
			return body
		}},
	"accepted, but not sold": {script: "capacity.js", env: []string{"RATES=20", "DURATION=1s", "WARM_UP=1s", "PAUSE=0s", "VUS=30", "TIMEOUT_MS=4000"},
		want: "fs_attempts{variant:atomic,step:at-20,outcome:accepted} count>0 (count was 0)",
		change: func(res *http.Response, body []byte) []byte {
			if outcome(res, "accepted") {
				res.StatusCode = http.StatusServiceUnavailable
			}
			return body
		}},
}

var purchaseIDIn = regexp.MustCompile(`("purchase_id":"[^"]+)"`)

// newID gives every accepted answer a purchase ID of its own.
func newID() func(res *http.Response, body []byte) []byte {
	var count atomic.Int64
	return func(res *http.Response, body []byte) []byte {
		if !outcome(res, "accepted") {
			return body
		}
		return purchaseIDIn.ReplaceAll(body, []byte(`${1}`+strconv.FormatInt(count.Add(1), 10)+`"`))
	}
}
