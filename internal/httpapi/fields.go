package httpapi

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"flashsale/internal/stock"
)

// kind is the JSON type of a field, or what a query parameter is read as.
type kind int

const (
	text kind = iota
	integer
	truth
	onOff // "on" or "off"
	instant
	object
	duration // query only
)

// field describes one member of a body, one query parameter or one header. The
// decoder, the OpenAPI document and the generated table of bad input read it.
type field struct {
	name     string
	kind     kind
	required bool
	doc      string
	example  any

	pattern  *regexp.Regexp    // text
	valid    func(string) bool // text: what pattern says, faster; nil: pattern is asked
	min, max int64             // integer: the value, text: characters, duration: milliseconds; max 0: no limits
	enum     []string          // text
	lacking  map[string]string // text: values that are known but not offered here, and why
	fields   []field           // object
}

// What a request may hold, beside the domain's own limits.
const (
	maxBody  = 16 << 10 // bytes
	maxPage  = 100      // sales
	pageSize = 50       // sales, when nothing else is asked for
	maxWait  = time.Minute
)

// The domain's patterns once more: the document has to name them. A test holds
// the two against each other.
var (
	idPattern   = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,63}$`)
	userPattern = regexp.MustCompile(`^[A-Za-z0-9_.@-]{1,64}$`)
	keyPattern  = regexp.MustCompile(`^[ -~]{1,128}$`)
)

// Instants lie between these two years, the last one excluded.
const firstYear, endYear = 1970, 2200

func saleFields(variants []string, lacking map[string]string) []field {
	work := []field{
		{name: "min", kind: integer, required: true, min: 0, max: stock.MaxWork.Milliseconds(), example: 50, doc: "shortest, in ms"},
		{name: "max", kind: integer, required: true, min: 0, max: stock.MaxWork.Milliseconds(), example: 200, doc: "longest, in ms; at least min"},
	}
	return []field{
		{name: "id", kind: text, pattern: idPattern, min: 1, max: 64, example: "phone-1111", doc: "the sale's ID; item_id when absent"},
		{name: "item_id", kind: text, required: true, pattern: idPattern, min: 1, max: 64, example: "phone", doc: "what is sold"},
		{name: "title", kind: text, required: true, min: 1, max: stock.MaxTitle, example: "A phone", doc: "for people"},
		{name: "price_cents", kind: integer, required: true, min: 0, max: stock.MaxPriceCents, example: 49900, doc: "price of a unit in cents"},
		{name: "stock", kind: integer, required: true, min: 1, max: stock.MaxStock, example: 100, doc: "units on sale"},
		{name: "variant", kind: text, required: true, enum: variants, lacking: lacking, min: 1, max: 64, example: variants[0], doc: "the lock that guards the stock"},
		{name: "per_user_limit", kind: integer, required: true, min: 1, max: stock.MaxStock, example: 1, doc: "units that one user may buy"},
		{name: "starts_at", kind: instant, example: "2030-11-11T10:00:00Z", doc: "when the sale starts; at once when absent"},
		{name: "ends_at", kind: instant, example: "2030-11-12T10:00:00Z", doc: "when the sale ends; never by itself when absent"},
		{name: "fencing", kind: onOff, example: "on", doc: "whether outlived lock holders are refused; on when absent"},
		{name: "work_ms", kind: object, fields: work, doc: "time spent in the lock on purpose, drawn from min to max"},
	}
}

var purchaseFields = []field{
	{name: "user_id", kind: text, required: true, pattern: userPattern, valid: stock.ValidUserID, min: 1, max: 64, example: "alice", doc: "the buyer"},
	{name: "quantity", kind: integer, required: true, min: 1, max: stock.MaxStock, example: 1, doc: "units wanted"},
}

var purchaseHeaders = []field{
	{name: "Idempotency-Key", kind: text, pattern: keyPattern, valid: stock.ValidKey, min: 1, max: stock.MaxKey, example: "5f2c", doc: "names this purchase: repeating the request with the same key is answered as the first time"},
}

var pageQuery = []field{
	{name: "after", kind: text, pattern: idPattern, min: 1, max: 64, example: "phone-1111", doc: "only sales with a greater ID"},
	{name: "limit", kind: integer, min: 1, max: maxPage, example: pageSize, doc: "how many sales at most; 50 when absent"},
}

var userQuery = []field{
	{name: "user_id", kind: text, required: true, pattern: userPattern, valid: stock.ValidUserID, min: 1, max: 64, example: "alice", doc: "the buyer"},
}

var auditQuery = []field{
	{name: "wait", kind: duration, min: 0, max: maxWait.Milliseconds(), example: "10s", doc: "how long to wait for events in flight; not at all when absent"},
	{name: "deep", kind: truth, example: true, doc: "compare purchase by purchase as well"},
}

// allowed tells people what a good value looks like.
func (f field) allowed() string {
	switch f.kind {
	case integer:
		return fmt.Sprintf("an integer from %d to %d", f.min, f.max)
	case truth:
		return "true or false"
	case onOff:
		return string(on) + " or " + string(off)
	case instant:
		return fmt.Sprintf("an RFC 3339 time with zone, as 2030-11-11T10:00:00Z, from %d until before %d", firstYear, endYear)
	case object:
		return membersOf(f.fields)
	case duration:
		return fmt.Sprintf("a duration from %s to %s, as 500ms or 10s", time.Duration(f.min)*time.Millisecond, time.Duration(f.max)*time.Millisecond)
	}
	switch {
	case f.enum != nil:
		return "one of " + join(f.enum)
	case f.pattern != nil:
		return "text that matches " + f.pattern.String()
	}
	return fmt.Sprintf("%d to %d characters of UTF-8, no control characters", f.min, f.max)
}

// membersOf tells what may stand in an object of these fields.
func membersOf(fields []field) string {
	if len(fields) == 0 {
		return "an empty object"
	}
	return "an object of " + fieldNames(fields)
}

func fieldNames(fields []field) string {
	if len(fields) == 0 {
		return "nothing"
	}
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	return strings.Join(names, ", ")
}

// values are the good values of a request, few enough to be looked through.
type values []value

// value is the value of one field: a text, a number, or a bool, time.Time,
// time.Duration or values.
type value struct {
	name   string
	text   string
	number int64
	other  any
}

func (v values) of(name string) value {
	for i := range v {
		if v[i].name == name {
			return v[i]
		}
	}
	return value{}
}

func (v values) has(name string) bool { return v.of(name).name != "" }

func (v *values) set(name string, other any)      { *v = append(*v, value{name: name, other: other}) }
func (v *values) setText(name, text string)       { *v = append(*v, value{name: name, text: text}) }
func (v *values) setInteger(name string, n int64) { *v = append(*v, value{name: name, number: n}) }
func (v *values) drop(name string) {
	*v = slices.DeleteFunc(*v, func(other value) bool { return other.name == name })
}

func (v values) text(name string) string       { return v.of(name).text }
func (v values) integer(name string) int64     { return v.of(name).number }
func (v values) instant(name string) time.Time { t, _ := v.of(name).other.(time.Time); return t }
func (v values) duration(name string) time.Duration {
	d, _ := v.of(name).other.(time.Duration)
	return d
}
func (v values) object(name string) values { o, _ := v.of(name).other.(values); return o }

func (v values) truth(name string, absent bool) bool {
	if b, ok := v.of(name).other.(bool); ok {
		return b
	}
	return absent
}
