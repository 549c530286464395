package stock

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Bounds of what Sale.Validate and Request.Validate let through. Every number
// stays an integer that Lua's floating point holds exactly (below 2^53).
const (
	MaxStock      = 1_000_000_000
	MaxPriceCents = 100_000_000_000 // a thousand million
	MaxTitle      = 200             // characters
	MaxWork       = 10 * time.Second
	MaxKey        = 128 // bytes of an idempotency key
)

// Instants of a sale lie in this range: microseconds since 1970 fit a Lua
// number until the year 2255.
var (
	minInstant = time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)
	maxInstant = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
)

var variantPattern = regexp.MustCompile(`^[a-z][a-z-]{0,31}$`)

// ValidID reports whether id can be a sale's or an item's ID. These three are
// asked several times for every purchase; the patterns that they stand for cost
// ten times as much.
func ValidID(id string) bool { // [a-z0-9][a-z0-9-]{0,63}
	return 0 < len(id) && len(id) <= 64 && id[0] != '-' && all(id, func(c byte) bool {
		return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-'
	})
}

// ValidUserID reports whether id can be a user's ID.
func ValidUserID(id string) bool { // [A-Za-z0-9_.@-]{1,64}
	return 0 < len(id) && len(id) <= 64 && all(id, func(c byte) bool {
		return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '.' || c == '@' || c == '-'
	})
}

// ValidKey reports whether key can be an idempotency key.
func ValidKey(key string) bool { // [ -~]{1,128}
	return 0 < len(key) && len(key) <= MaxKey && all(key, func(c byte) bool { return ' ' <= c && c <= '~' })
}

func all(text string, is func(byte) bool) bool {
	for i := range len(text) {
		if !is(text[i]) {
			return false
		}
	}
	return true
}

// Validate returns nil or an *InvalidError that lists every wrong field. That
// the variant exists is left to the program that knows which it offers; see
// ValidateFor.
//
// A stock of 0 is wrong although nothing would break: such a sale can sell
// nothing, so it is always a slip in a catalogue, and better found there.
func (s Sale) Validate() error {
	var wrong fieldErrors
	wrong.checkID("id", s.ID)
	wrong.checkID("item_id", s.ItemID)
	wrong.checkTitle(s.Title)
	wrong.checkRange("price_cents", s.PriceCents, 0, MaxPriceCents)
	wrong.checkRange("stock", s.Stock, 1, MaxStock)
	wrong.checkRange("per_user_limit", s.PerUserLimit, 1, MaxStock)
	if !variantPattern.MatchString(s.Variant) {
		wrong.add("variant", missingOr(s.Variant, "is no name of a variant"), "a variant's name, like watchdog")
	}
	wrong.checkInstant("starts_at", s.StartsAt)
	wrong.checkInstant("ends_at", s.EndsAt)
	if !s.StartsAt.IsZero() && !s.EndsAt.IsZero() && !s.StartsAt.Before(s.EndsAt) {
		wrong.add("ends_at", "is not after starts_at", "an instant after starts_at")
	}
	wrong.checkWork(s.Work)
	return wrong.err()
}

// ValidateFor is Validate for a program that offers these variants alone.
func (s Sale) ValidateFor(variants []string) error {
	err := s.Validate()
	if slices.Contains(variants, s.Variant) {
		return err
	}
	var wrong fieldErrors
	if invalid, ok := err.(*InvalidError); ok {
		wrong = slices.DeleteFunc(invalid.Fields, func(f FieldError) bool { return f.Field == "variant" })
	}
	wrong.add("variant", missingOr(s.Variant, "is not offered"), "one of "+strings.Join(variants, ", "))
	return wrong.err()
}

// Validate returns nil or an *InvalidError that lists every wrong field. How
// much one user may buy is the sale's to say, so it is not looked at here.
func (r Request) Validate() error {
	var wrong fieldErrors
	wrong.checkID("sale_id", r.SaleID)
	if !ValidUserID(r.UserID) {
		wrong.add("user_id", missingOr(r.UserID, "has characters that are not allowed, or too many"),
			"1 to 64 of A-Z a-z 0-9 _ . @ -")
	}
	wrong.checkRange("quantity", r.Quantity, 1, MaxStock)
	if r.IdempotencyKey != "" && !ValidKey(r.IdempotencyKey) {
		wrong.add("Idempotency-Key", "has characters that are not allowed, or too many",
			fmt.Sprintf("1 to %d printable ASCII characters", MaxKey))
	}
	return wrong.err()
}

type fieldErrors []FieldError

func (w *fieldErrors) add(field, reason, allowed string) {
	*w = append(*w, FieldError{Field: field, Reason: reason, Allowed: allowed})
}

func (w fieldErrors) err() error {
	if len(w) == 0 {
		return nil
	}
	return &InvalidError{Fields: w}
}

func (w *fieldErrors) checkID(field, id string) {
	if !ValidID(id) {
		w.add(field, missingOr(id, "has characters that are not allowed, or too many"),
			"1 to 64 of a-z 0-9 -, the first not -")
	}
}

func (w *fieldErrors) checkRange(field string, value, low, high int64) {
	switch {
	case value < low:
		w.add(field, "is too small", fmt.Sprintf("%d to %d", low, high))
	case value > high:
		w.add(field, "is too large", fmt.Sprintf("%d to %d", low, high))
	}
}

func (w *fieldErrors) checkTitle(title string) {
	allowed := fmt.Sprintf("1 to %d characters of UTF-8, no control characters", MaxTitle)
	switch {
	case !utf8.ValidString(title):
		w.add("title", "is not valid UTF-8", allowed)
	case strings.TrimSpace(title) == "":
		w.add("title", missingOr(title, "is blank"), allowed)
	case utf8.RuneCountInString(title) > MaxTitle:
		w.add("title", "is too long", allowed)
	case strings.ContainsFunc(title, unicode.IsControl):
		w.add("title", "has control characters", allowed)
	}
}

func (w *fieldErrors) checkInstant(field string, t time.Time) {
	if !t.IsZero() && (t.Before(minInstant) || !t.Before(maxInstant)) {
		w.add(field, "is out of range", fmt.Sprintf("from %d until before %d", minInstant.Year(), maxInstant.Year()))
	}
}

func (w *fieldErrors) checkWork(work WorkRange) {
	limit := fmt.Sprintf("0 to %d", MaxWork.Milliseconds())
	if work.Min < 0 || work.Min > MaxWork {
		w.add("work_ms.min", "is out of range", limit)
	}
	if work.Max < 0 || work.Max > MaxWork {
		w.add("work_ms.max", "is out of range", limit)
	} else if work.Max < work.Min {
		w.add("work_ms.max", "is below work_ms.min", "at least work_ms.min")
	}
}

func missingOr(value, reason string) string {
	if value == "" {
		return "is missing"
	}
	return reason
}
