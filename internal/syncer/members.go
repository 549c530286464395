package syncer

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"

	"flashsale/internal/stock"
)

// maxMembers bounds the search for a name; an event has eleven.
const maxMembers = 64

// member is a name of a JSON object and the text of its value.
type member struct {
	name  string
	value []byte
}

type members []member

// object splits one JSON object into its members, by their exact names. It is
// false for anything else, and when a name stands there twice. (The decoder of
// encoding/json would do, but takes three times as long, and every purchase comes
// through here.)
func object(data []byte) (members, bool) {
	if !json.Valid(data) {
		return nil, false
	}
	rest := skipSpace(data)
	if rest[0] != '{' {
		return nil, false
	}
	found := make(members, 0, 12)
	for rest = skipSpace(rest[1:]); rest[0] != '}'; {
		var name, value []byte
		name, rest = cutString(rest)
		rest = skipSpace(skipSpace(rest)[1:]) // the colon
		value, rest = cutValue(rest)
		rest = skipSpace(rest)
		if rest[0] == ',' {
			rest = skipSpace(rest[1:])
		}
		key, ok := text(name)
		if _, twice := found.get(key); !ok || twice || len(found) == maxMembers {
			return nil, false
		}
		found = append(found, member{key, value})
	}
	return found, true
}

func (m members) get(name string) ([]byte, bool) {
	for i := range m {
		if m[i].name == name {
			return m[i].value, true
		}
	}
	return nil, false
}

// read puts a member into a variable. A missing one, and a value of another
// type or out of its range, are not read.
func (m members) read(name string, into any) bool {
	value, ok := m.get(name)
	if !ok {
		return false
	}
	var err error
	switch into := into.(type) {
	case *string:
		*into, ok = text(value)
	case *stock.EventType:
		var s string
		s, ok = text(value)
		*into = stock.EventType(s)
	case *int:
		*into, err = strconv.Atoi(string(value))
	case *int64:
		*into, err = strconv.ParseInt(string(value), 10, 64)
	case *uint64:
		*into, err = strconv.ParseUint(string(value), 10, 64)
	case *time.Time:
		err = into.UnmarshalJSON(value) // leaves null at zero, which is no valid time here
	default:
		return false
	}
	return ok && err == nil
}

// text is the value of a JSON string.
func text(value []byte) (s string, ok bool) {
	if value[0] != '"' {
		return "", false
	}
	if bytes.IndexByte(value, '\\') < 0 {
		return string(value[1 : len(value)-1]), true
	}
	return s, json.Unmarshal(value, &s) == nil
}

// The cutters below work on valid JSON alone.

func skipSpace(data []byte) []byte {
	return bytes.TrimLeft(data, " \t\r\n")
}

// cutString cuts off the string that data begins with.
func cutString(data []byte) (value, rest []byte) {
	for i := 1; ; i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return data[:i+1], data[i+1:]
		}
	}
}

// cutValue cuts off the value that data begins with.
func cutValue(data []byte) (value, rest []byte) {
	switch data[0] {
	case '"':
		return cutString(data)
	case '{', '[':
		return cutNested(data)
	}
	end := bytes.IndexAny(data, ",} \t\r\n")
	return data[:end], data[end:]
}

// cutNested cuts off an object or array: up to where as many brackets have been
// closed as opened.
func cutNested(data []byte) (value, rest []byte) {
	depth := 0
	for i := 0; ; i++ {
		switch data[i] {
		case '"':
			_, behind := cutString(data[i:])
			i = len(data) - len(behind) - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return data[:i+1], data[i+1:]
			}
		}
	}
}
