package syncer

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"flashsale/internal/stock"
)

func good() stock.Event {
	return stock.Deduction{
		PurchaseID: stock.PurchaseID("sale-1", "bob", "key"), SaleID: "sale-1", ItemID: "item-1", UserID: "bob",
		Quantity: 2, PriceCents: 1999, Variant: "watchdog", At: time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC),
	}.Event(1_770_000_000_000_000)
}

// with is a good event with one member set to raw JSON, or left out when raw
// is "".
func with(t testing.TB, name, raw string) []byte {
	t.Helper()
	text, err := json.Marshal(good())
	if err != nil {
		t.Fatal(err)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		t.Fatal(err)
	}
	if name != "" {
		delete(members, name)
	}
	var parts []string
	for name, value := range members {
		parts = append(parts, `"`+name+`":`+string(value))
	}
	if raw != "" {
		parts = append(parts, `"`+name+`":`+raw)
	}
	return []byte("{" + strings.Join(parts, ",") + "}")
}

func TestDecode(t *testing.T) {
	event, reason := decode(with(t, "", ""))
	if reason != "" || event != good() {
		t.Errorf("%+v, %q", event, reason)
	}
	for _, value := range []string{`"later"`, `{"deep":[1,{"er":null}]}`, `1e400`} {
		if _, reason := decode(with(t, "added_by_a_newer_program", value)); reason != "" {
			t.Errorf("an unknown member of %s is %q", value, reason)
		}
	}
	zoned, reason := decode(with(t, "at", `"2026-03-01T20:00:00.123456+08:00"`))
	if reason != "" || zoned != good() {
		t.Errorf("another zone: %v, %q", zoned.At, reason)
	}
}

// Every field with every kind of value that it must not have.
func TestFieldsThatArePoison(t *testing.T) {
	wrong := map[string][]string{
		"v":           {`0`, `2`, `"1"`, `1.5`},
		"type":        {`"cancelled"`, `"DEDUCTED"`, `""`, `1`},
		"sale_id":     {`""`, `"Sale-1"`, `"sale 1"`, `"-sale"`, `"sale-2"`, `"` + strings.Repeat("a", 65) + `"`, `1`},
		"purchase_id": {`""`, `"sale-1"`, `"sale-1."`, `"sale-2.` + strings.Repeat("a", 26) + `"`, `"sale-1.` + strings.Repeat("A", 26) + `"`, `7`},
		"item_id":     {`""`, `"ITEM"`, `"\ud800"`},
		"user_id":     {`""`, `"bob smith"`, `"bob\u0000"`, `"b\u00f6b"`, `"` + strings.Repeat("u", 65) + `"`},
		"quantity":    {`0`, `-1`, `1.5`, `1e3`, `"1"`, `1000000001`, `9223372036854775808`, `1e999`, strings.Repeat("9", 400)},
		"price_cents": {`-1`, `0.1`, `"1"`, `100000000001`, `-0.0`},
		"fence":       {`-1`, `9223372036854775808`, `18446744073709551616`, `1.0`, `"1"`},
		"variant":     {`""`, `"watch dog"`, `"` + strings.Repeat("v", 33) + `"`, `3`},
		"at":          {`""`, `"yesterday"`, `0`, `"0001-01-01T00:00:00Z"`, `"1969-12-31T23:59:59Z"`, `"10000-01-01T00:00:00Z"`, `"9999-12-31T23:59:59-01:00"`},
	}
	for name, values := range wrong {
		for _, value := range append(values, "", "null", "true", "[]", "{}", "[1]", `{"a":1}`) {
			_, reason := decode(with(t, name, value))
			want := "invalid_" + name
			switch {
			case name == "v":
				want = reasonVersion
			case name == "type":
				want = reasonType
			case name == "sale_id" && value == `"sale-2"`:
				want = "invalid_purchase_id" // which belongs to sale-1
			}
			if reason != want {
				t.Errorf("%s = %.50s: reason %q, want %q", name, value, reason, want)
			}
		}
	}
}

func TestBytesThatArePoison(t *testing.T) {
	text := string(with(t, "", ""))
	for name, c := range map[string]struct{ value, want string }{
		"nothing":             {"", reasonMalformed},
		"blank":               {" \n", reasonMalformed},
		"null":                {"null", reasonMalformed},
		"array":               {"[" + text + "]", reasonMalformed},
		"string":              {`"deducted"`, reasonMalformed},
		"cut off":             {text[:len(text)-1], reasonMalformed},
		"not closed":          {text[:len(text)-1] + ",", reasonMalformed},
		"two events":          {text + text, reasonMalformed},
		"something behind":    {text + "x", reasonMalformed},
		"zero byte behind":    {text + "\x00", reasonMalformed},
		"byte order mark":     {"\ufeff" + text, reasonMalformed},
		"NaN":                 {`{"v":NaN}`, reasonMalformed},
		"infinity":            {`{"v":-Infinity}`, reasonMalformed},
		"comment":             {"/**/" + text, reasonMalformed},
		"name without quotes": {`{v:1}`, reasonMalformed},
		"name is a number":    {`{1:1}`, reasonMalformed},
		"same name twice":     {`{"quantity":1,` + text[1:], reasonMalformed},
		"same name, escaped":  {`{"\u0071uantity":1,` + text[1:], reasonMalformed},
		"other case":          {strings.Replace(text, `"v"`, `"V"`, 1), reasonVersion},
		"not UTF-8":           {strings.Replace(text, "bob", "b\xffb", 1), reasonNotUTF8},
		"too large":           {text + strings.Repeat(" ", maxEvent), reasonTooLarge},
		"too many members":    {manyMembers(), reasonMalformed},
		"deep":                {strings.Repeat("[", maxEvent/2), reasonMalformed},
		"deep member":         {`{"x":` + strings.Repeat(`{"x":`, maxEvent/5-10), reasonMalformed},
	} {
		if _, reason := decode([]byte(c.value)); reason != c.want {
			t.Errorf("%s: reason %q, want %q", name, reason, c.want)
		}
	}
}

// Whatever comes, decoding ends with a reason or with an event that has it all.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"v":1}`))
	f.Add(with(f, "", ""))
	f.Add(with(f, "at", `"x"`))
	f.Fuzz(func(t *testing.T, value []byte) {
		event, reason := decode(value)
		if reason == "" && (!stock.ValidID(event.SaleID) || event.Quantity < 1 || event.At.Year() < 1970) {
			t.Errorf("%q is taken for %+v", value, event)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	value := with(b, "", "")
	b.ReportAllocs()
	for b.Loop() {
		if _, reason := decode(value); reason != "" {
			b.Fatal(reason)
		}
	}
}

func manyMembers() string {
	var b strings.Builder
	for i := range maxMembers + 1 {
		b.WriteString(`,"m` + strings.Repeat("x", i) + `":1`)
	}
	return "{" + b.String()[1:] + "}"
}
