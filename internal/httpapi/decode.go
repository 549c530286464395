package httpapi

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"flashsale/internal/stock"
)

// problems collects what is wrong, at most one complaint a field.
type problems struct{ fields []stock.FieldError }

func (p *problems) add(field, reason, allowed string) {
	if !slices.ContainsFunc(p.fields, func(f stock.FieldError) bool { return f.Field == field }) {
		p.fields = append(p.fields, stock.FieldError{Field: field, Reason: reason, Allowed: allowed})
	}
}

func (p *problems) err() error {
	if len(p.fields) == 0 {
		return nil
	}
	return &stock.InvalidError{Fields: p.fields}
}

// decodeBody reads one JSON object, strictly: encoding/json alone would take
// unknown and repeated members, null for anything, and broken UTF-8. Its error
// says that the body is no object at all; what is wrong with single fields goes to p.
func decodeBody(body []byte, fields []field, p *problems) (values, error) {
	if got, ok := decodePlain(body, fields); ok {
		return got, nil
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, detailed(errMalformed, "The body is empty; it must be a JSON object.")
	}
	var probe json.RawMessage
	if err := json.Unmarshal(body, &probe); err != nil { // nesting is bounded by encoding/json
		return nil, detailed(errMalformed, "The body is not one JSON value: "+syntaxText(err)+".")
	}
	if !isObject(body) {
		p.add("body", "is not an object", membersOf(fields))
		return nil, p.err()
	}
	return decodeObject(body, "", fields, p), nil
}

func syntaxText(err error) string {
	if s, ok := err.(*json.SyntaxError); ok {
		return strings.ToValidUTF8(s.Error(), "?") + ", at byte " + strconv.FormatInt(s.Offset, 10)
	}
	return "syntax error"
}

func isObject(raw []byte) bool { return bytes.TrimLeft(raw, " \t\r\n")[0] == '{' }

// decodeObject takes apart a valid JSON object.
func decodeObject(raw []byte, path string, fields []field, p *problems) values {
	got, given := values{}, map[string]bool{}
	dec := json.NewDecoder(bytes.NewReader(raw))
	_, _ = dec.Token() // {
	for dec.More() {
		key, _ := dec.Token()
		var value json.RawMessage
		_ = dec.Decode(&value) // valid as a whole, so valid in its parts
		name := key.(string)
		i := slices.IndexFunc(fields, func(f field) bool { return f.name == name })
		switch {
		case i < 0:
			p.add(path+shorten(name), "is unknown", fieldNames(fields))
		case given[name]:
			got.drop(name)
			p.add(path+name, "is given twice", "one value")
		default:
			decodeField(value, path, fields[i], &got, p)
		}
		given[name] = true
	}
	for _, f := range fields {
		if f.required && !given[f.name] {
			p.add(path+f.name, "is missing", f.allowed())
		}
	}
	return got
}

// isInteger says whether s is digits, perhaps with a minus.
func isInteger(s string) bool {
	digits := strings.TrimPrefix(s, "-")
	return digits != "" && strings.Trim(digits, "0123456789") == ""
}

func decodeField(raw json.RawMessage, path string, f field, got *values, p *problems) {
	wrong := func(reason string) { p.add(path+f.name, reason, f.allowed()) }
	first := raw[0]
	if first == 'n' {
		wrong("is null")
		return
	}
	switch f.kind {
	case integer:
		if first != '-' && (first < '0' || first > '9') {
			wrong("is not a number")
			return
		}
		f.parse(string(raw), got, wrong)
	case truth:
		if first != 't' && first != 'f' {
			wrong("is not a boolean")
			return
		}
		got.set(f.name, first == 't')
	case object:
		if first != '{' {
			wrong("is not an object")
			return
		}
		got.set(f.name, decodeObject(raw, path+f.name+".", f.fields, p))
	default:
		if first != '"' {
			wrong("is not a string")
			return
		}
		var s string
		_ = json.Unmarshal(raw, &s) // broken UTF-8 becomes U+FFFD, which checkText refuses
		f.parse(s, got, wrong)
	}
}

// parse reads a value from its text, as it stands in a query, a header or a JSON string.
func (f field) parse(s string, got *values, wrong func(reason string)) {
	switch f.kind {
	case text:
		if reason := f.checkText(s); reason != "" {
			wrong(reason)
			return
		}
		got.setText(f.name, s)
	case integer:
		if !isInteger(s) {
			wrong("is not an integer")
			return
		}
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || n < f.min || n > f.max {
			wrong("is out of range")
			return
		}
		got.setInteger(f.name, n)
	case truth:
		if s != "true" && s != "false" {
			wrong("is not a boolean")
			return
		}
		got.set(f.name, s == "true")
	case onOff:
		if s != string(on) && s != string(off) {
			wrong("is neither on nor off")
			return
		}
		got.set(f.name, s == string(on))
	case instant:
		var t time.Time
		if t.UnmarshalText([]byte(s)) != nil {
			wrong("is not a time")
			return
		}
		if t = t.UTC(); t.Year() < firstYear || t.Year() >= endYear {
			wrong("is out of range")
			return
		}
		got.set(f.name, t.Truncate(time.Microsecond)) // what the ledger keeps
	case duration:
		d, err := time.ParseDuration(s)
		if err != nil {
			wrong("is not a duration")
			return
		}
		if d < time.Duration(f.min)*time.Millisecond || d > time.Duration(f.max)*time.Millisecond {
			wrong("is out of range")
			return
		}
		got.set(f.name, d)
	}
}

// checkText says what is wrong with a text, "" if nothing.
func (f field) checkText(s string) string {
	n := int64(utf8.RuneCountInString(s))
	switch {
	case strings.ContainsRune(s, utf8.RuneError): // what broken UTF-8 decodes to, and a lone surrogate
		return "is not valid UTF-8"
	case s == "":
		return "is empty"
	case n < f.min:
		return "is too short"
	case n > f.max:
		return "is too long"
	case f.lacking[s] != "":
		return "is not offered here: it " + f.lacking[s]
	case f.enum != nil && !slices.Contains(f.enum, s):
		return "is not known"
	case !f.matches(s):
		return "has characters that are not allowed"
	case f.pattern == nil && strings.ContainsFunc(s, unicode.IsControl):
		return "has control characters"
	}
	return ""
}

func (f field) matches(s string) bool {
	switch {
	case f.valid != nil:
		return f.valid(s)
	case f.pattern != nil:
		return f.pattern.MatchString(s)
	}
	return true
}

// shorten keeps an unknown name from filling the answer.
func shorten(name string) string {
	const most = 64
	if utf8.RuneCountInString(name) <= most {
		return name
	}
	return string([]rune(name)[:most]) + "..."
}
