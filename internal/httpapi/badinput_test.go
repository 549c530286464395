package httpapi

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"flashsale/internal/stock"
)

// sample is a good value of f, as JSON.
func sample(f field) string {
	switch f.kind {
	case integer:
		return fmt.Sprint(f.max)
	case truth:
		return "true"
	case object:
		return objectOf(f.fields, "", "")
	case duration:
		return `"1s"`
	}
	data, _ := json.Marshal(f.example)
	return string(data)
}

// objectOf is a good object of all fields, but that name has value instead;
// "" leaves it out. A name that is no field is added.
func objectOf(fields []field, name, value string) string {
	var members []string
	known := false
	for _, f := range fields {
		known = known || f.name == name
		switch {
		case f.name != name:
			members = append(members, fmt.Sprintf("%q:%s", f.name, sample(f)))
		case value != "":
			members = append(members, fmt.Sprintf("%q:%s", f.name, value))
		}
	}
	if name != "" && !known {
		members = append(members, fmt.Sprintf("%q:%s", name, value))
	}
	return "{" + strings.Join(members, ",") + "}"
}

// badValues are the JSON values that f must refuse, by what is wrong with them.
func badValues(f field) map[string]string {
	bad := map[string]string{"null": "null", "array": "[]", "nested": strings.Repeat("[", 100) + strings.Repeat("]", 100)}
	if f.required {
		bad["missing"] = ""
	}
	if f.kind != object {
		bad["object"] = "{}"
	}
	if f.kind != truth {
		bad["boolean"] = "true"
	}
	if f.kind != integer {
		bad["number"] = "1"
	}
	switch f.kind {
	case integer:
		bad["string"] = `"1"`
		bad["below"] = fmt.Sprint(f.min - 1)
		bad["above"] = fmt.Sprint(f.max + 1)
		bad["negative"] = "-1"
		bad["fraction"] = "1.5"
		bad["fraction of none"] = "1.0"
		bad["exponent"] = "1e2"
		bad["overflow"] = "9223372036854775808"
		bad["huge"] = strings.Repeat("9", 400)
		bad["huge exponent"] = "1e999999"
	case truth, object:
		bad["string"] = `"true"`
	case instant:
		for _, s := range []string{"", "now", "2030-11-11", "2030-11-11T10:00:00", "2030-13-11T10:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "1699999999"} {
			bad["time "+s] = fmt.Sprintf("%q", s)
		}
		fallthrough
	default:
		bad["empty"] = `""`
		bad["blank"] = `" "`
		bad["too long"] = `"` + strings.Repeat("a", int(f.max)+1) + `"`
		bad["not UTF-8"] = "\"a\xff\""
		bad["cut UTF-8"] = "\"\xe6\x89\""
		bad["lone surrogate"] = `"\ud800"`
		bad["NUL"] = `"a\u0000"`
		bad["newline"] = `"a\nb"`
		bad["control"] = `"a\u007f"`
		if f.pattern != nil {
			bad["slash"], bad["space"], bad["unicode"] = `"a/b"`, `"a b"`, `"é"`
			bad["quote"] = `"a'; DROP TABLE sales; --"`
		}
		if f.kind == onOff {
			bad["number as text"], bad["boolean as text"], bad["capitals"], bad["longer"] = `"1"`, `"true"`, `"On"`, `"on "`
		}
		if f.enum != nil {
			bad["unknown word"] = `"atomicx"`
			bad["other case"] = `"Atomic"`
		}
	}
	return bad
}

// posts are the two routes that take a body.
func posts() map[string][]field {
	return map[string][]field{
		"/v1/sales":                 saleFields([]string{"atomic", "watchdog"}, nil),
		"/v1/sales/phone/purchases": purchaseFields,
	}
}

func TestBadFields(t *testing.T) {
	w := newWorld()
	w.sell("phone", nil)
	c := newClient(t, w)
	before, cases := w.dump(t), 0
	for path, fields := range posts() {
		refused := func(what, body string, names ...string) {
			t.Helper()
			cases++
			got := c.do("POST", path, body, "Authorization", bearer)
			if got.status != 422 || got.code != "invalid" || !slices.Equal(got.fields(), names) {
				t.Errorf("%s %s: got %d %s %v, want 422 invalid %v; body %.200q", path, what, got.status, got.code, got.fields(), names, body)
			}
			list, _ := got.body["errors"].([]any)
			for _, e := range list {
				if e := e.(map[string]any); e["reason"] == "" || e["allowed"] == "" {
					t.Errorf("%s %s: says too little: %v", path, what, e)
				}
			}
		}
		for _, f := range fields {
			for what, value := range badValues(f) {
				refused(f.name+" "+what, objectOf(fields, f.name, value), f.name)
			}
			twice := objectOf(fields, "", "")
			refused(f.name+" twice", fmt.Sprintf("%s,%q:%s}", twice[:len(twice)-1], f.name, sample(f)), f.name)
			refused(f.name+" in capitals", objectOf(fields, strings.ToUpper(f.name), "1"), strings.ToUpper(f.name))
			for _, inner := range f.fields {
				for what, value := range badValues(inner) {
					refused(f.name+"."+inner.name+" "+what, objectOf(fields, f.name, objectOf(f.fields, inner.name, value)), f.name+"."+inner.name)
				}
				refused("unknown in "+f.name, objectOf(fields, f.name, objectOf(f.fields, "x", "1")), f.name+".x")
			}
		}
		for _, name := range []string{"unknown", "__proto__", " " + fields[0].name} {
			refused("unknown field", objectOf(fields, name, "1"), name)
		}
		refused("empty name", `{"":1,`+objectOf(fields, "", "")[1:], "")
		for _, body := range []string{"[]", "null", "1", `"x"`, "true"} {
			refused("no object", body, "body")
		}
		var required []string
		for _, f := range fields {
			if f.required {
				required = append(required, f.name)
			}
		}
		refused("everything missing", "{}", required...)
		if got := c.do("POST", path+"?x=1", "{}", "Authorization", bearer).want(t, 422, "invalid"); !slices.Equal(got.fields(), append([]string{"x"}, required...)) {
			t.Errorf("query and body are not reported together: %v", got.fields())
		}
	}
	ends := objectOf(posts()["/v1/sales"], "ends_at", `"2030-11-11T10:00:00Z"`)
	if got := c.do("POST", "/v1/sales", ends, "Authorization", bearer).want(t, 422, "invalid"); !slices.Equal(got.fields(), []string{"ends_at"}) {
		t.Errorf("ends at its start: %v", got.fields())
	}
	if w.dump(t) != before {
		t.Error("something changed")
	}
	t.Logf("%d bad bodies", cases)
}

// What the tables call allowed is allowed, at both ends.
func TestGoodFieldsAtTheirLimits(t *testing.T) {
	for path, fields := range posts() {
		for _, f := range fields {
			good := []string{sample(f)}
			switch {
			case f.kind == integer:
				good = append(good, fmt.Sprint(f.min))
			case f.kind == text && f.enum == nil:
				good = append(good, `"a"`, `"`+strings.Repeat("a", int(f.max))+`"`)
			}
			if !f.required {
				good = append(good, "")
			}
			for _, value := range good {
				w := newWorld()
				if path != "/v1/sales" {
					w.sell("phone", func(s *stock.Sale) { s.Stock, s.PerUserLimit = stock.MaxStock, stock.MaxStock })
				}
				newClient(t, w).do("POST", path, objectOf(fields, f.name, value), "Authorization", bearer).want(t, 201, "")
			}
		}
	}
}

func TestBrokenBodies(t *testing.T) {
	w := newWorld()
	w.sell("phone", nil)
	c := newClient(t, w)
	before := w.dump(t)
	for path, fields := range posts() {
		good := objectOf(fields, "", "")
		for _, body := range []string{" ", "\n", "{", "}", good[:len(good)-1], good + good, good + "x", good + "]", "{'a':1}", "{a:1}", `{"a":}`, `{"a":1,}`,
			`{"a":01}`, `{"a":+1}`, `{"a":.5}`, `{"a":NaN}`, `{"a":Infinity}`, `{"a":tru}`, `{"a":"` + "\n" + `"}`, `{"a":"\x"}`, `{"a":"\u12"}`, "\xef\xbb\xbf" + good, "\xff", "\x00",
			"// c\n" + good, strings.Repeat("[", 16000), strings.Repeat(`{"a":`, 3000)} {
			c.do("POST", path, body, "Authorization", bearer).want(t, 400, "malformed_json")
		}
		r := httptest.NewRequest("POST", path, nil)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", bearer)
		c.send(r).want(t, 400, "malformed_json")

		huge := `{"x":"` + strings.Repeat("a", maxBody) + `"}`
		c.do("POST", path, huge, "Authorization", bearer).want(t, 413, "too_large")
		r = httptest.NewRequest("POST", path, io.MultiReader(strings.NewReader(huge))) // of unknown length
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", bearer)
		c.send(r).want(t, 413, "too_large")

		for _, mediaType := range []string{"", "text/plain", "application/x-www-form-urlencoded", "application/jsonx", "application/json; charset=latin1", "application/json;;", "\xff"} {
			c.do("POST", path, good, "Authorization", bearer, "Content-Type", "", "Content-Type", mediaType).want(t, 415, "unsupported_media_type")
		}
		c.do("POST", path, good, "Authorization", bearer, "Content-Encoding", "gzip").want(t, 415, "unsupported_media_type")
	}
	if w.dump(t) != before {
		t.Error("something changed")
	}
	c.do("POST", "/v1/sales/phone/purchases", goodPurchase, "Content-Type", "", "Content-Type", "Application/JSON; charset=UTF-8").want(t, 201, "")
}

// A body that is announced as too long is refused before any of it comes.
func TestTooLongByItsOwnWord(t *testing.T) {
	w := newWorld()
	w.sell("phone", nil)
	server := httptest.NewServer(New(w.options()))
	defer server.Close()
	for _, path := range []string{"/v1/sales", "/v1/sales/phone/close", "/v1/sales/phone/purchases"} {
		conn, err := net.DialTimeout("tcp", server.Listener.Addr().String(), 5*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n{", path, bearer, maxBody+1)
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusRequestEntityTooLarge || !response.Close {
			t.Errorf("%s: got %d, closing %t", path, response.StatusCode, response.Close)
		}
	}
}

func TestBadQueriesAndHeaders(t *testing.T) {
	w := newWorld()
	w.sell("phone", nil)
	c := newClient(t, w)
	before := w.dump(t)
	long := strings.Repeat("a", 5000)
	queries := map[string]map[string][]string{
		"/v1/sales": {
			"after": {"", "A", "a/b", long, "\xff", "a\x00"},
			"limit": {"", "0", "-1", "101", "1.5", "x", "1e1", " 1", "9223372036854775808", "\xff"},
		},
		"/v1/sales/phone/purchases": {"user_id": {"", "a b", "é", long, "\xff", "<script>"}},
		"/v1/sales/phone/audit": {
			"wait": {"", "1", "-1s", "61s", "1h", "x", "s", long, "9999999999h", "NaNs"},
			"deep": {"", "yes", "TRUE", "2"},
		},
	}
	for path, byName := range queries {
		base := url.Values{}
		if path == "/v1/sales/phone/purchases" {
			base.Set("user_id", "alice")
			c.do("GET", path, "").want(t, 422, "invalid")
		}
		for name, values := range byName {
			for _, value := range values {
				q := url.Values{name: {value}}
				if got := c.do("GET", path+"?"+q.Encode(), "").want(t, 422, "invalid"); !slices.Equal(got.fields(), []string{name}) {
					t.Errorf("%s %s=%.40q: fields %v", path, name, value, got.fields())
				}
			}
			q := url.Values{name: {"1", "1"}}
			c.do("GET", path+"?"+q.Encode(), "").want(t, 422, "invalid")
		}
		base.Set("unknown", "1")
		if got := c.do("GET", path+"?"+base.Encode(), "").want(t, 422, "invalid"); !slices.Equal(got.fields(), []string{"unknown"}) {
			t.Errorf("%s: fields %v", path, got.fields())
		}
		c.do("GET", path+"?%zz=1", "").want(t, 422, "invalid")
		c.do("GET", path+"?a;b", "").want(t, 422, "invalid")
	}
	for _, key := range []string{"é", "\xff", "a\x7f", "a\tb", strings.Repeat("k", 129)} {
		got := c.do("POST", "/v1/sales/phone/purchases", goodPurchase, "Idempotency-Key", key).want(t, 422, "invalid")
		if !slices.Equal(got.fields(), []string{"Idempotency-Key"}) {
			t.Errorf("key %q: fields %v", key, got.fields())
		}
	}
	r := httptest.NewRequest("POST", "/v1/sales/phone/purchases", strings.NewReader(goodPurchase))
	r.Header = http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": {""}}
	c.send(r).want(t, 422, "invalid")
	c.do("POST", "/v1/sales/phone/purchases", goodPurchase, "Idempotency-Key", "a", "Idempotency-Key", "a").want(t, 422, "invalid")
	if w.dump(t) != before {
		t.Error("something changed")
	}
	c.do("POST", "/v1/sales/phone/purchases", goodPurchase, "Idempotency-Key", strings.Repeat("k", 128)).want(t, 201, "")
}

// raw sends a request target just as it stands, which no HTTP client would.
func raw(t *testing.T, addr, method, target string) (int, http.Header, string) {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		method, target, bearer, len(goodPurchase), goodPurchase)
	response, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		t.Fatalf("%s %.60q: %v", method, target, err)
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	return response.StatusCode, response.Header, string(body)
}

func TestPathTricks(t *testing.T) {
	w := newWorld()
	w.sell("phone", nil)
	before := w.dump(t)
	server := httptest.NewServer(New(w.options()))
	defer server.Close()
	addr := server.Listener.Addr().String()
	long := strings.Repeat("a", 8000)
	for _, target := range []string{"/", "/v1", "/v1/", "/v1/sales/", "/v1/sales/phone/", "//v1/sales/phone", "/v1//sales/phone", "/v1/sales/phone//purchases",
		"/v1/sales/../sales/phone", "/v1/sales/%2e%2e/sales", "/v1/sales/phone%2Fpurchases", "/v1/sales/phone%2fpurchases", "/v1/sales%2Fphone", "/v1/sales/phone%00", "/v1/sales/%00",
		"/v1/sales/phone%20", "/v1/sales/Phone", "/v1/sales/phone%0d%0aX: y", "/v1/sales/%ff", "/v1/sales/ph%C3%B3ne", "/v1/sales/phone;x=1", "/v1/sales/" + long, "/v1/purchases/" + long, "/v1/purchases/phone",
		"/v1/purchases/..%2f..%2fetc%2fpasswd.aaaaaaaaaaaaaaaaaaaaaaaaaa", "/v1/purchases/phone.AAAAAAAAAAAAAAAAAAAAAAAAAA", "/V1/sales", "/v1/sales/%70hone/%70urchases/x",
		"/v1/sales/phone%2F..%2Fphone/purchases", "/v1/sales/nothing/purchases", "/v1/sales/:id", "/v1/sales/*", "/metrics", "/debug/pprof/", "/v1/sales/../../metrics"} {
		for _, method := range []string{"GET", "POST"} {
			target := target
			if method == "GET" && strings.HasSuffix(target, "/nothing/purchases") {
				target += "?user_id=alice"
			}
			status, header, body := raw(t, addr, method, target)
			if status == 400 && strings.Contains(target, "X: y") {
				continue // net/http sees a broken request line
			}
			if status != 404 && status != 405 || header.Get("Content-Type") != "application/problem+json" || !json.Valid([]byte(body)) {
				t.Errorf("%s %.60q: %d %s %.100s", method, target, status, header.Get("Content-Type"), body)
			}
		}
	}
	for _, target := range []string{"/v1/sales/%zz", "/v1/sales/a b", "/v1/sales/\x00"} {
		if status, _, _ := raw(t, addr, "GET", target); status != 400 {
			t.Errorf("%q: %d", target, status)
		}
	}
	if w.dump(t) != before {
		t.Error("something changed")
	}
}

func FuzzBodies(f *testing.F) {
	for path, fields := range posts() {
		f.Add(path == "/v1/sales", []byte(objectOf(fields, "", "")))
		f.Add(path == "/v1/sales", []byte(objectOf(fields, "x", "\"\xff\"")))
		f.Add(path == "/v1/sales", []byte(`{"quantity":1e9,"user_id":"\ud800","quantity":null}`))
	}
	w := newWorld()
	w.sell("phone", func(s *stock.Sale) { s.Stock, s.PerUserLimit = stock.MaxStock, 1 })
	c := newClient(f, w)
	f.Fuzz(func(t *testing.T, sale bool, body []byte) {
		c := &client{t, c.handler, c.document}
		path := "/v1/sales/phone/purchases"
		if sale {
			path = "/v1/sales"
		}
		before := w.dump(t)
		got := c.do("POST", path, string(body), "Content-Type", "", "Content-Type", "application/json", "Authorization", bearer)
		switch {
		case got.status >= 500:
			t.Errorf("%d %v", got.status, got.body)
		case got.status >= 400 && w.dump(t) != before:
			t.Errorf("%d, and something changed", got.status)
		case got.status == 422 && got.code == "invalid" && len(got.fields()) == 0:
			t.Errorf("no field is named: %v", got.body)
		case got.status < 300 && !json.Valid(body):
			t.Errorf("accepted what is no JSON: %q", body)
		}
	})
}
