package httpapi

import "bytes"

// decodePlain is decodeObject for what nearly every client sends: one object of
// texts in plain ASCII and whole numbers, each known and given once, nothing
// missing, nothing wrong. Anything else it leaves to decodeBody, which has the
// words for what may be wrong. It saves a purchase three passes over its body.
func decodePlain(body []byte, fields []field) (values, bool) {
	rest, ok := cut(body, '{')
	if !ok {
		return nil, false
	}
	got := make(values, 0, len(fields))
	for {
		var name, value []byte
		if name, rest, ok = cutPlainText(rest); !ok {
			return nil, false
		}
		if rest, ok = cut(rest, ':'); !ok {
			return nil, false
		}
		f := fieldNamed(fields, name)
		switch {
		case f == nil || got.has(f.name):
			return nil, false
		case f.kind == integer:
			value, rest, ok = cutNumber(rest)
		case f.kind == text:
			value, rest, ok = cutPlainText(rest)
		default:
			return nil, false
		}
		if !ok {
			return nil, false
		}
		f.parse(string(value), &got, func(string) { ok = false })
		if !ok {
			return nil, false
		}
		if end, ok := cut(rest, '}'); ok {
			return got, len(bytes.Trim(end, space)) == 0 && complete(fields, got)
		}
		if rest, ok = cut(rest, ','); !ok {
			return nil, false
		}
	}
}

const space = " \t\r\n"

// cut cuts a character off, and the space around it.
func cut(data []byte, character byte) (rest []byte, ok bool) {
	data = bytes.TrimLeft(data, space)
	if len(data) == 0 || data[0] != character {
		return data, false
	}
	return bytes.TrimLeft(data[1:], space), true
}

// cutPlainText cuts a string off that stands for itself.
func cutPlainText(data []byte) (value, rest []byte, ok bool) {
	if len(data) == 0 || data[0] != '"' {
		return nil, nil, false
	}
	for i, c := range data[1:] {
		switch {
		case c == '"':
			return data[1 : i+1], data[i+2:], true
		case c < ' ' || c > '~' || c == '\\':
			return nil, nil, false
		}
	}
	return nil, nil, false
}

// cutNumber cuts a number off as JSON writes a natural one.
func cutNumber(data []byte) (value, rest []byte, ok bool) {
	n := 0
	for n < len(data) && '0' <= data[n] && data[n] <= '9' {
		n++
	}
	return data[:n], data[n:], n == 1 || n > 1 && data[0] != '0'
}

func fieldNamed(fields []field, name []byte) *field {
	for i := range fields {
		if fields[i].name == string(name) {
			return &fields[i]
		}
	}
	return nil
}

func complete(fields []field, got values) bool {
	for i := range fields {
		if fields[i].required && !got.has(fields[i].name) {
			return false
		}
	}
	return true
}
