package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"flashsale/internal/stock"

	"github.com/gin-gonic/gin"
)

func (a *api) openapi(c *gin.Context, _ input) error {
	c.Data(http.StatusOK, "application/json", a.document)
	return nil
}

// dict is a JSON object.
type dict = map[string]any

// document describes routes as OpenAPI 3.1. Nothing in it is written down a
// second time: it is made of the tables that the code runs on.
func document(routes []route) []byte {
	paths := map[string]dict{}
	for _, r := range routes {
		if paths[r.path] == nil {
			paths[r.path] = dict{}
		}
		paths[r.path][strings.ToLower(r.method)] = operation(r)
	}
	data, err := json.MarshalIndent(dict{
		"openapi": "3.1.0",
		"info": dict{
			"title": "flashsale", "version": "1",
			"description": "Sales of few units to many buyers. Errors are RFC 9457 problem documents with a stable code.",
			"license":     dict{"name": "MIT", "identifier": "MIT"},
		},
		"servers": []dict{{"url": "/"}},
		"paths":   paths,
		"components": dict{
			"schemas":         dict{"Problem": schemaOf(reflect.TypeFor[problem]())},
			"securitySchemes": dict{"admin": dict{"type": "http", "scheme": "bearer"}},
		},
	}, "", "  ")
	if err != nil {
		panic(err) // maps, strings and numbers always marshal
	}
	return append(data, '\n')
}

func operation(r route) dict {
	op := dict{"operationId": r.name, "summary": r.summary, "responses": responses(r)}
	parameters := []dict{}
	if r.id != nil {
		parameters = append(parameters, dict{"name": "id", "in": "path", "required": true, "schema": dict{"type": "string"}})
	}
	for in, fields := range map[string][]field{"query": r.query, "header": r.headers} {
		for _, f := range fields {
			parameters = append(parameters, dict{
				"name": f.name, "in": in, "required": f.required, "description": f.doc, "schema": f.schema(), "example": f.example,
			})
		}
	}
	if len(parameters) > 0 {
		op["parameters"] = parameters
	}
	if r.body != nil {
		op["requestBody"] = dict{"required": !r.bodyless, "content": content("application/json", objectSchema(r.body))}
	}
	if r.admin {
		op["security"] = []dict{{"admin": []string{}}}
	}
	return op
}

func content(mediaType string, schema dict) dict {
	return dict{mediaType: dict{"schema": schema}}
}

// responses puts the codes of one status under that status.
func responses(r route) dict {
	good := dict{"description": http.StatusText(r.status)}
	if r.reply != nil {
		good["content"] = content("application/json", schemaOf(reflect.TypeOf(r.reply)))
	} else {
		good["content"] = content("application/json", dict{"type": "object"})
	}
	if r.outcome {
		good["headers"] = dict{
			"X-Outcome":     dict{"description": "accepted, or the code of the problem", "schema": dict{"type": "string"}},
			"Server-Timing": dict{"description": "lock_wait and lock_hold in ms; absent without a lock, lock_hold also where the lock was not had", "schema": dict{"type": "string"}},
		}
	}
	all := dict{strconv.Itoa(r.status): good}
	byStatus := map[int][]string{}
	for _, code := range r.allCodes() {
		status := statusOf(code)
		byStatus[status] = append(byStatus[status], code)
	}
	for status, codes := range byStatus {
		slices.Sort(codes)
		answer := dict{
			"description": join(codes),
			"content": content("application/problem+json", dict{"allOf": []dict{
				{"$ref": "#/components/schemas/Problem"},
				{"properties": dict{"code": dict{"enum": codes}}},
			}}),
		}
		switch status {
		case http.StatusLocked:
			answer["headers"] = dict{"Retry-After": dict{"description": "seconds", "schema": dict{"type": "integer"}}}
		case http.StatusUnauthorized:
			answer["headers"] = dict{"WWW-Authenticate": dict{"schema": dict{"type": "string"}}}
		}
		all[strconv.Itoa(status)] = answer
	}
	return all
}

// statusOf is the status of a code. A code that no error has is a slip in the
// route table.
func statusOf(code string) int {
	for _, o := range outcomes {
		if o.code == code {
			return o.status
		}
	}
	panic("httpapi: no error has the code " + code)
}

// schema describes a field of a request.
func (f field) schema() dict {
	s := dict{"description": f.doc}
	switch f.kind {
	case integer:
		s["type"], s["format"], s["minimum"], s["maximum"] = "integer", "int64", f.min, f.max
	case truth:
		s["type"] = "boolean"
	case onOff:
		s["type"], s["enum"] = "string", words[reflect.TypeFor[toggle]()]
	case instant:
		s["type"], s["format"] = "string", "date-time"
	case duration:
		s["type"] = "string"
		s["description"] = f.doc + "; " + f.allowed()
	case object:
		o := objectSchema(f.fields)
		o["description"] = f.doc
		return o
	default:
		s["type"], s["minLength"], s["maxLength"] = "string", f.min, f.max
		if f.pattern != nil {
			s["pattern"] = f.pattern.String()
		}
		if f.enum != nil {
			s["enum"] = f.enum
		}
	}
	if f.example != nil {
		s["examples"] = []any{f.example}
	}
	return s
}

func objectSchema(fields []field) dict {
	properties, required := dict{}, []string{}
	for _, f := range fields {
		properties[f.name] = f.schema()
		if f.required {
			required = append(required, f.name)
		}
	}
	return dict{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

// words are the string types of which only some values occur.
var words = map[reflect.Type][]string{
	reflect.TypeFor[stock.State](): {string(stock.StateScheduled), string(stock.StateOpen), string(stock.StateClosed)},
	reflect.TypeFor[toggle]():      {string(on), string(off)},
	reflect.TypeFor[stock.Status](): {string(stock.StatusPending), string(stock.StatusPersisted), string(stock.StatusRejected),
		string(stock.StatusCancelled), string(stock.StatusPaid)},
}

// schemaOf describes a type of an answer as encoding/json writes it.
func schemaOf(t reflect.Type) dict {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return dict{"type": "string", "format": "date-time"}
	case t.Kind() == reflect.Pointer:
		return schemaOf(t.Elem())
	case t.Kind() == reflect.String && words[t] != nil:
		return dict{"type": "string", "enum": words[t]}
	}
	switch t.Kind() {
	case reflect.String:
		return dict{"type": "string"}
	case reflect.Bool:
		return dict{"type": "boolean"}
	case reflect.Int, reflect.Int64, reflect.Uint64:
		return dict{"type": "integer", "format": "int64"}
	case reflect.Slice:
		return dict{"type": "array", "items": schemaOf(t.Elem())}
	case reflect.Struct:
		properties, required := dict{}, []string{}
		for i := range t.NumField() {
			f := t.Field(i)
			name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			s := schemaOf(f.Type)
			if strings.Contains(options, "omitempty") {
				properties[name] = s
				continue
			}
			if f.Type.Kind() == reflect.Pointer {
				s["type"] = []any{s["type"], "null"}
			}
			properties[name] = s
			required = append(required, name)
		}
		return dict{"type": "object", "properties": properties, "required": required}
	}
	panic(fmt.Sprintf("httpapi: no schema for %s", t))
}
