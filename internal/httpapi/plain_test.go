package httpapi

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

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
		`{"user_id":"a\u0062","quantity":1}`:                       false, // good, the long way
		`{"user_id":"a\\u0062","quantity":1}`:                      false,
		`{"user_id":"\u00e4","quantity":1}`:                        false,
		`{"user_id":null,"quantity":1}`:                            false,
		`{"user_id":"","quantity":1}`:                              false,
		`{"user_id`:                                                false,
		`{}`:                                                       false,
		`[]`:                                                       false,
		``:                                                         false,
	} {
		if ok := plainAsStrict(t, []byte(body), purchaseFields); ok != plain {
			t.Errorf("%s: plain is %v, want %v", body, ok, plain)
		}
	}
}

// strictly is decodeBody without the short cut; nil: refused.
func strictly(body []byte, fields []field) values {
	var probe json.RawMessage
	if json.Unmarshal(body, &probe) != nil || !isObject(body) {
		return nil
	}
	var p problems
	got := decodeObject(body, "", fields, &p)
	if p.err() != nil {
		return nil
	}
	return got
}

// plainAsStrict says whether the short cut takes a body, and fails unless the
// long way takes it too, for the same values.
func plainAsStrict(t *testing.T, body []byte, fields []field) (plain bool) {
	t.Helper()
	got, plain := decodePlain(body, fields)
	if !plain {
		return false
	}
	if want := strictly(body, fields); want == nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%q: got %v, want %v", body, got, want)
	}
	return true
}

var (
	plainPurchase = `{"user_id":"ann-12","quantity":10}`
	plainSale     = ` { "item_id":"lamp","title" : "A lamp","price_cents":0,"stock":100,"variant":"atomic","per_user_limit":2,"id":"l-1"}`
	plainFields   = saleFields([]string{"none", "atomic"}, nil)
)

// Every body that is a byte away from a plain one, be the byte another, missing
// or one too many.
func TestNeighboursOfPlainBodies(t *testing.T) {
	for _, test := range []struct {
		body   string
		fields []field
	}{{plainPurchase, purchaseFields}, {plainSale, plainFields}} {
		if !plainAsStrict(t, []byte(test.body), test.fields) {
			t.Errorf("%s is not plain", test.body)
		}
		taken := 0
		try := func(parts ...string) {
			if plainAsStrict(t, []byte(strings.Join(parts, "")), test.fields) {
				taken++
			}
		}
		for at := range len(test.body) {
			before, here, after := test.body[:at], test.body[at:at+1], test.body[at+1:]
			try(before, after)
			try(before)
			for c := range 256 {
				other := string([]byte{byte(c)})
				try(before, other, after)
				try(before, other, here, after)
				try(test.body, here, other) // begun once more
			}
		}
		if all := 3 * 256 * len(test.body); taken < all/100 || taken > all/2 {
			t.Errorf("%s: %d of %d neighbours are plain", test.body, taken, all)
		}
	}
}

func FuzzPlainBodies(f *testing.F) {
	for _, body := range []string{`{"user_id":"ann","quantity":1}`, `{"quantity":10, "user_id":"a\u0062"}`, plainPurchase, plainSale} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		plainAsStrict(t, []byte(body), purchaseFields)
		plainAsStrict(t, []byte(body), plainFields)
	})
}

// BenchmarkPlainBody measures the short cut and the long way in turn: strict/plain
// is how many times as long the long way takes.
func BenchmarkPlainBody(b *testing.B) {
	const turn = 100 // bodies, so that reading the clock costs nothing
	body := []byte(plainPurchase)
	var plain, strict time.Duration
	b.ReportAllocs()
	for b.Loop() {
		began := time.Now()
		for range turn {
			if _, ok := decodePlain(body, purchaseFields); !ok {
				b.Fatal("not plain")
			}
		}
		between := time.Now()
		for range turn {
			if strictly(body, purchaseFields) == nil {
				b.Fatal("refused")
			}
		}
		plain, strict = plain+between.Sub(began), strict+time.Since(between)
	}
	b.ReportMetric(float64(plain.Nanoseconds())/float64(b.N*turn), "plain-ns")
	b.ReportMetric(float64(strict.Nanoseconds())/float64(b.N*turn), "strict-ns")
	b.ReportMetric(strict.Seconds()/plain.Seconds(), "strict/plain")
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
