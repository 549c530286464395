package syncer

import (
	"regexp"
	"time"
	"unicode/utf8"

	"flashsale/internal/stock"
)

// Why a message is poison. They stand in the dead letter's reason header; one
// field's fault is "invalid_" and the field.
const (
	reasonTooLarge  = "too_large"
	reasonNotUTF8   = "not_utf8"
	reasonMalformed = "malformed" // no JSON object, something behind it, a name twice, or far too many
	reasonVersion   = "unknown_version"
	reasonType      = "unknown_type"
)

// maxEvent is many times what an event has; it bounds what decoding may cost.
const maxEvent = 16 << 10

var variantPattern = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)

// decode reads an event, or says why it is none. It is stricter than
// encoding/json, which takes the last of two equal names, any case, and null
// for a number: what is ambiguous must not be sold. Names that it doesn't know
// are let through, for a newer program may add some; a change of meaning gets
// a new version.
func decode(value []byte) (event stock.Event, reason string) {
	switch {
	case len(value) > maxEvent:
		return event, reasonTooLarge
	case !utf8.Valid(value):
		return event, reasonNotUTF8
	}
	fields, ok := object(value)
	if !ok {
		return event, reasonMalformed
	}
	if !fields.read("v", &event.Version) || event.Version != stock.EventVersion {
		return event, reasonVersion
	}
	if !fields.read("type", &event.Type) || event.Type != stock.Deducted {
		return event, reasonType
	}
	for _, field := range []struct {
		name  string
		into  any
		valid func() bool
	}{
		{"sale_id", &event.SaleID, func() bool { return stock.ValidID(event.SaleID) }},
		{"purchase_id", &event.PurchaseID, func() bool {
			sale, ok := stock.SaleOf(event.PurchaseID)
			return ok && sale == event.SaleID
		}},
		{"item_id", &event.ItemID, func() bool { return stock.ValidID(event.ItemID) }},
		{"user_id", &event.UserID, func() bool { return stock.ValidUserID(event.UserID) }},
		{"quantity", &event.Quantity, func() bool { return event.Quantity >= 1 && event.Quantity <= stock.MaxStock }},
		{"price_cents", &event.PriceCents, func() bool { return event.PriceCents >= 0 && event.PriceCents <= stock.MaxPriceCents }},
		{"fence", &event.Fence, func() bool { return event.Fence <= maxFence }},
		{"variant", &event.Variant, func() bool { return variantPattern.MatchString(event.Variant) }},
		{"at", &event.At, func() bool { return storable(event.At) }},
	} {
		if !fields.read(field.name, field.into) || !field.valid() {
			return event, "invalid_" + field.name
		}
	}
	event.At = event.At.UTC()
	return event, ""
}

// maxFence is the largest number that a signed column holds.
const maxFence = 1<<63 - 1

// storable reports whether a DATETIME column can hold t.
func storable(t time.Time) bool {
	year := t.UTC().Year()
	return year >= 1970 && year <= 9999
}
