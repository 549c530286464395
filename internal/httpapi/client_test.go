package httpapi

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// client asks a handler and holds every answer against the OpenAPI document
// that the handler serves.
type client struct {
	t        testing.TB
	handler  http.Handler
	document openAPI
}

type openAPI struct {
	Paths      map[string]map[string]operationDoc
	Components struct{ Schemas map[string]schemaDoc }
}

type operationDoc struct {
	OperationID string
	Parameters  []struct {
		Name, In string
		Required bool
		Schema   schemaDoc
	}
	RequestBody *struct {
		Content map[string]struct{ Schema schemaDoc }
	}
	Responses map[string]struct {
		Headers map[string]any
		Content map[string]struct{ Schema schemaDoc }
	}
	Security []any
}

type schemaDoc struct {
	Type       any
	Properties map[string]schemaDoc
	Required   []string
	Enum       []string
	AllOf      []schemaDoc
	Items      *schemaDoc
}

func newClient(t testing.TB, w *world) *client {
	t.Helper()
	c := &client{t: t, handler: New(w.options())}
	rec := httptest.NewRecorder()
	c.handler.ServeHTTP(rec, httptest.NewRequest("GET", "/openapi.json", nil))
	if err := json.Unmarshal(rec.Body.Bytes(), &c.document); err != nil {
		t.Fatal(err)
	}
	return c
}

type answer struct {
	status int
	header http.Header
	body   map[string]any
	code   string
}

func (a answer) fields() []string {
	list, _ := a.body["errors"].([]any)
	var names []string
	for _, e := range list {
		names = append(names, e.(map[string]any)["field"].(string))
	}
	return names
}

// do sends a request; head holds pairs of header name and value. A body is JSON
// unless head says otherwise.
func (c *client) do(method, path, body string, head ...string) answer {
	c.t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(head); i += 2 {
		if head[i+1] == "" {
			r.Header.Del(head[i])
		} else {
			r.Header.Add(head[i], head[i+1])
		}
	}
	return c.send(r)
}

func (c *client) send(r *http.Request) answer {
	c.t.Helper()
	rec := httptest.NewRecorder()
	c.handler.ServeHTTP(rec, r)
	got := answer{status: rec.Code, header: rec.Header()}
	if rec.Body.Len() > 0 {
		if err := json.Unmarshal(rec.Body.Bytes(), &got.body); err != nil {
			c.t.Fatalf("%s %s: body is not JSON: %s", r.Method, r.URL, rec.Body)
		}
	}
	got.code, _ = got.body["code"].(string)
	c.hold(r, got)
	return got
}

// hold compares an answer with the document.
func (c *client) hold(r *http.Request, got answer) {
	c.t.Helper()
	mediaType := got.header.Get("Content-Type")
	if got.status >= 400 {
		for _, key := range []string{"type", "title", "status", "detail", "code"} {
			if got.body[key] == nil || mediaType != "application/problem+json" {
				c.t.Errorf("%s %s: %d is no problem document: %s %v", r.Method, r.URL, got.status, mediaType, got.body)
			}
		}
		if int(got.body["status"].(float64)) != got.status {
			c.t.Errorf("%s %s: status %d, in the body %v", r.Method, r.URL, got.status, got.body["status"])
		}
	}
	op, ok := c.operation(r)
	if !ok {
		return // no such route, or no such method
	}
	response, ok := op.Responses[strconv.Itoa(got.status)]
	if !ok {
		c.t.Errorf("%s %s: status %d (%s) is not documented", r.Method, r.URL, got.status, got.code)
		return
	}
	content, ok := response.Content[mediaType]
	if !ok {
		c.t.Errorf("%s %s: %s is not documented for %d", r.Method, r.URL, mediaType, got.status)
		return
	}
	c.match(r.Method+" "+r.URL.Path, content.Schema, got.body)
}

func (c *client) operation(r *http.Request) (operationDoc, bool) {
	for path, operations := range c.document.Paths {
		pattern := regexp.MustCompile("^" + regexp.MustCompile(`\{[^}]*\}`).ReplaceAllString(path, "[^/]+") + "$")
		if op, ok := operations[strings.ToLower(r.Method)]; ok && pattern.MatchString(r.URL.EscapedPath()) {
			return op, true
		}
	}
	return operationDoc{}, false
}

// match compares names and presence, all the way down.
func (c *client) match(at string, s schemaDoc, value any) {
	c.t.Helper()
	if s.AllOf != nil {
		problem := c.document.Components.Schemas["Problem"]
		c.match(at, problem, value)
		code := value.(map[string]any)["code"].(string)
		if enum := s.AllOf[1].Properties["code"].Enum; !slices.Contains(enum, code) {
			c.t.Errorf("%s: code %s is not among the documented %v", at, code, enum)
		}
		return
	}
	switch v := value.(type) {
	case map[string]any:
		if s.Properties == nil {
			return
		}
		for key, member := range v {
			if p, ok := s.Properties[key]; ok {
				c.match(at+"."+key, p, member)
			} else {
				c.t.Errorf("%s.%s is not documented", at, key)
			}
		}
		for _, key := range s.Required {
			if _, ok := v[key]; !ok {
				c.t.Errorf("%s.%s is missing", at, key)
			}
		}
	case []any:
		for _, item := range v {
			c.match(at+"[]", *s.Items, item)
		}
	case string:
		if s.Type != "string" || s.Enum != nil && !slices.Contains(s.Enum, v) {
			c.t.Errorf("%s: %q is not of the documented %v %v", at, v, s.Type, s.Enum)
		}
	}
}

func (got answer) want(t testing.TB, status int, code string) answer {
	t.Helper()
	if got.status != status || got.code != code {
		t.Errorf("got %d %q %v, want %d %q", got.status, got.code, got.body, status, code)
	}
	return got
}

const (
	goodSale     = `{"item_id":"phone","title":"A phone","price_cents":100,"stock":10,"variant":"atomic","per_user_limit":1}`
	goodPurchase = `{"user_id":"alice","quantity":1}`
	bearer       = "Bearer " + token
)
