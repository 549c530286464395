package httpapi

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"flashsale/internal/stock"
)

// The short cut and the long way say the same, or the short cut says nothing.
func TestPlainBodiesAreDecodedAsOthers(t *testing.T) {
	for body, plain := range map[string]bool{
		`{"user_id":"ann","quantity":1}`:                           true,
		" { \"quantity\" : 20 ,\r\n\t\"user_id\" : \"a.b@c\" } \n": true,
		`{"user_id":"ann","quantity":0}`:                           false,
		`{"user_id":"ann","quantity":01}`:                          false,
		`{"user_id":"ann","quantity":1.5}`:                         false,
		`{"user_id":"ann","quantity":-1}`:                          false,
		`{"user_id":"ann","quantity":99999999999999999999}`:        false,
		`{"user_id":"ann","quantity":"1"}`:                         false,
		`{"user_id":"ann","quantity":1,}`:                          false,
		`{"user_id":"ann","quantity":1}{`:                          false,
		`{"user_id":"ann","quantity":1`:                            false,
		`{"user_id":"ann","quantity":1,"user_id":"bob"}`:           false,
		`{"user_id":"ann","quantity":1,"more":1}`:                  false,
		`{"user_id":"ann"}`:                                        false,
		`{"user_id":"a\\u0062","quantity":1}`:                      false, // good, the long way
		`{"user_id":"\u00e4","quantity":1}`:                        false,
		`{"user_id":null,"quantity":1}`:                            false,
		`{"user_id":"","quantity":1}`:                              false,
		`{"user_id`:                                                false,
		`{}`:                                                       false,
		`[]`:                                                       false,
		``:                                                         false,
	} {
		got, ok := decodePlain([]byte(body), purchaseFields)
		if ok != plain {
			t.Errorf("%s: plain is %v, want %v", body, ok, plain)
		}
		if !ok {
			continue
		}
		var p problems
		if want := decodeObject([]byte(body), "", purchaseFields, &p); p.err() != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %v, want %v (%v)", body, got, want, p.err())
		}
	}
}

func FuzzPlainBodies(f *testing.F) {
	f.Add(`{"user_id":"ann","quantity":1}`)
	f.Add(`{"quantity":10, "user_id":"a\u0062"}`)
	f.Fuzz(func(t *testing.T, body string) {
		got, ok := decodePlain([]byte(body), purchaseFields)
		if !ok {
			return
		}
		var p problems
		if !json.Valid([]byte(body)) {
			t.Fatalf("%q is no JSON", body)
		}
		if want := decodeObject([]byte(body), "", purchaseFields, &p); p.err() != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %v, want %v (%v)", body, got, want, p.err())
		}
	})
}

// The functions are the patterns, character by character.
func TestValidIsThePattern(t *testing.T) {
	for name, f := range map[string]field{
		"user": purchaseFields[0], "key": purchaseHeaders[0], "id": {pattern: idPattern, valid: stock.ValidID},
	} {
		texts := []string{"", strings.Repeat("a", 64), strings.Repeat("a", 65), strings.Repeat("a", 128), strings.Repeat("a", 129)}
		for c := range 256 {
			texts = append(texts, string([]byte{byte(c)}), string([]byte{'a', byte(c)}), string([]byte{'a', byte(c), 'a'}))
		}
		for _, text := range texts {
			if got, want := f.valid(text), f.pattern.MatchString(text); got != want {
				t.Errorf("%s %q: %v, the pattern says %v", name, text, got, want)
			}
		}
	}
}
