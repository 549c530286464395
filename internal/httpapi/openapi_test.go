package httpapi

import (
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"flashsale/internal/stock"

	"github.com/gin-gonic/gin"
)

// The document has the routes of the engine, no more, no fewer.
func TestDocumentHasTheEnginesRoutes(t *testing.T) {
	w := newWorld()
	c := newClient(t, w)
	var served, documented []string
	for _, r := range c.handler.(*gin.Engine).Routes() {
		if r.Method != http.MethodHead {
			served = append(served, r.Method+" "+regexp.MustCompile(`:(\w+)`).ReplaceAllString(r.Path, "{$1}"))
		}
	}
	for path, operations := range c.document.Paths {
		for method := range operations {
			documented = append(documented, strings.ToUpper(method)+" "+path)
		}
	}
	slices.Sort(served)
	slices.Sort(documented)
	if !slices.Equal(served, documented) {
		t.Errorf("served     %v\ndocumented %v", served, documented)
	}
}

// The document's fields, limits and obligations are what the handler enforces:
// every documented field is accepted, a required one is missed, and one value
// beyond each limit is refused. (The tables of bad and good input do the rest.)
func TestDocumentedFieldsAreEnforced(t *testing.T) {
	c := newClient(t, newWorld())
	for _, r := range (&api{Options: newWorld().options()}).routeTable() {
		op := c.document.Paths[r.path][strings.ToLower(r.method)]
		if (op.RequestBody != nil) != (r.body != nil) || (len(op.Security) > 0) != r.admin {
			t.Errorf("%s: body or token differ", r.name)
		}
		var names []string
		for _, f := range slices.Concat(r.query, r.headers) {
			names = append(names, f.name)
		}
		for _, p := range op.Parameters {
			if p.In != "path" && !slices.Contains(names, p.Name) {
				t.Errorf("%s: parameter %s is not read", r.name, p.Name)
			}
			names = slices.DeleteFunc(names, func(n string) bool { return n == p.Name })
		}
		if len(names) > 0 {
			t.Errorf("%s: parameters %v are not documented", r.name, names)
		}
		if r.body == nil {
			continue
		}
		schema := op.RequestBody.Content["application/json"].Schema
		for _, f := range r.body {
			if _, ok := schema.Properties[f.name]; !ok || slices.Contains(schema.Required, f.name) != f.required {
				t.Errorf("%s: field %s differs", r.name, f.name)
			}
			delete(schema.Properties, f.name)
		}
		if len(schema.Properties) > 0 {
			t.Errorf("%s: fields %v are not read", r.name, slices.Collect(maps.Keys(schema.Properties)))
		}
	}
}

// Each code of the table is documented somewhere or answers what has no route.
func TestEveryCodeIsDocumented(t *testing.T) {
	c := newClient(t, newWorld())
	documented := map[string]bool{"not_found": true, "method_not_allowed": true}
	for _, operations := range c.document.Paths {
		for _, op := range operations {
			for _, response := range op.Responses {
				for _, content := range response.Content {
					if len(content.Schema.AllOf) == 2 {
						for _, code := range content.Schema.AllOf[1].Properties["code"].Enum {
							documented[code] = true
						}
					}
				}
			}
		}
	}
	for _, o := range outcomes {
		if !documented[o.code] {
			t.Errorf("%s is not documented", o.code)
		}
	}
}

// The patterns that the document names are the domain's.
func TestPatternsAreTheDomains(t *testing.T) {
	for _, s := range []string{"", "a", "A", "-a", "a-", "0", "a.b", "a_b", "a@b", "é", "a\n", strings.Repeat("a", 64), strings.Repeat("a", 65)} {
		if idPattern.MatchString(s) != stock.ValidID(s) {
			t.Errorf("ID %q", s)
		}
		if userPattern.MatchString(s) != stock.ValidUserID(s) {
			t.Errorf("user ID %q", s)
		}
	}
	for _, s := range []string{"a", " ", "~", "\x1f", "\x7f", "é", strings.Repeat("a", 128), strings.Repeat("a", 129)} {
		err := stock.Request{SaleID: "s", UserID: "u", Quantity: 1, IdempotencyKey: s}.Validate()
		if keyPattern.MatchString(s) != (err == nil) {
			t.Errorf("key %q: %v", s, err)
		}
	}
}

// errors.go is the only file that knows which status an error has.
func TestOneErrorTable(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	status := regexp.MustCompile(`\b(4\d\d|5\d\d)\b, *"`)
	for _, f := range files {
		name := f.Name()
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || name == "errors.go" {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if status.Match(text) {
			t.Errorf("%s has a status of an error", name)
		}
	}
}
