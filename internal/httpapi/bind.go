package httpapi

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/gin-gonic/gin"
)

// input is a request that passed every check that needs no store.
type input struct {
	id     string // of the path
	query  values
	header values
	body   values
}

// bind checks token, path, query, headers and body, in this order. Wrong fields
// of the last three are reported together.
func (a *api) bind(c *gin.Context, r route) (input, error) {
	in := input{id: c.Param("id")}
	if r.admin {
		if err := a.authorize(c.Request); err != nil {
			return in, err
		}
	}
	if r.id != nil && !r.id.valid(in.id) {
		return in, r.id.missing // no such ID can exist: the stores needn't be asked
	}
	var p problems
	in.query = bindQuery(c.Request.URL.RawQuery, r, &p)
	in.header = bindHeaders(c.Request.Header, r.headers, &p)
	if r.body != nil {
		var err error
		if in.body, err = bindBody(c, r, &p); err != nil {
			return in, err
		}
		if r.check != nil {
			r.check(in, &p)
		}
	}
	return in, p.err()
}

func bindQuery(raw string, r route, p *problems) values {
	if r.anyQuery || raw == "" && len(r.query) == 0 {
		return nil
	}
	got := values{}
	query, err := url.ParseQuery(raw)
	if err != nil {
		p.add("query", "is malformed", "name=value pairs joined by &, percent-encoded")
		return got
	}
	for name := range query {
		if !has(r.query, name) {
			p.add(shorten(strings.ToValidUTF8(name, "?")), "is unknown", fieldNames(r.query))
		}
	}
	bindTexts(query, r.query, &got, p)
	return got
}

func bindHeaders(header http.Header, fields []field, p *problems) values {
	if len(fields) == 0 {
		return nil
	}
	got := make(values, 0, len(fields))
	bindTexts(header, fields, &got, p)
	return got
}

func bindTexts(from map[string][]string, fields []field, got *values, p *problems) {
	for _, f := range fields {
		wrong := func(reason string) { p.add(f.name, reason, f.allowed()) }
		switch given := from[f.name]; {
		case len(given) > 1:
			p.add(f.name, "is given twice", "one value")
		case len(given) == 1:
			f.parse(given[0], got, wrong)
		case f.required:
			wrong("is missing")
		}
	}
}

func has(fields []field, name string) bool {
	for _, f := range fields {
		if f.name == name {
			return true
		}
	}
	return false
}

func bindBody(c *gin.Context, r route, p *problems) (values, error) {
	if c.Request.ContentLength > maxBody {
		c.Header("Connection", "close") // else the server reads on after the answer
		return nil, errTooLarge
	}
	if !r.bodyless {
		if err := checkMediaType(c.Request); err != nil {
			return nil, err
		}
	}
	raw, err := readBody(c)
	if err != nil {
		return nil, err
	}
	if r.bodyless {
		if len(raw) == 0 {
			return values{}, nil
		}
		if err := checkMediaType(c.Request); err != nil {
			return nil, err
		}
	}
	return decodeBody(raw, r.body, p)
}

func checkMediaType(r *http.Request) error {
	if types := r.Header["Content-Type"]; len(types) == 1 && types[0] == "application/json" && r.Header["Content-Encoding"] == nil {
		return nil
	}
	media, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	charset := params["charset"]
	if err != nil || media != "application/json" || charset != "" && !strings.EqualFold(charset, "utf-8") ||
		r.Header.Get("Content-Encoding") != "" {
		return errMediaType
	}
	return nil
}

func readBody(c *gin.Context) ([]byte, error) {
	if n := c.Request.ContentLength; 0 < n && n <= maxBody { // the server lets no more be read
		raw := make([]byte, n)
		if _, err := io.ReadFull(c.Request.Body, raw); err != nil {
			return nil, detailed(errMalformed, "The body ended before it was complete.")
		}
		return raw, nil
	}
	raw, err := io.ReadAll(http.MaxBytesReader(c.Writer, c.Request.Body, maxBody))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, errTooLarge
	}
	if err != nil {
		return nil, detailed(errMalformed, "The body ended before it was complete.")
	}
	return raw, nil
}
