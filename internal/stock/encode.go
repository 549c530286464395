package stock

import (
	"encoding/json"
	"strconv"
	"time"
)

// AppendJSON appends the event as encoding/json writes it, byte by byte, in a
// fraction of the time: every accepted purchase is written so. Its error is that of
// an instant that JSON can't hold.
func (e Event) AppendJSON(to []byte) ([]byte, error) {
	to = strconv.AppendInt(append(to, `{"v":`...), int64(e.Version), 10)
	to = AppendText(append(to, `,"type":`...), string(e.Type))
	to = AppendText(append(to, `,"purchase_id":`...), e.PurchaseID)
	to = AppendText(append(to, `,"sale_id":`...), e.SaleID)
	to = AppendText(append(to, `,"item_id":`...), e.ItemID)
	to = AppendText(append(to, `,"user_id":`...), e.UserID)
	to = strconv.AppendInt(append(to, `,"quantity":`...), e.Quantity, 10)
	to = strconv.AppendInt(append(to, `,"price_cents":`...), e.PriceCents, 10)
	to = strconv.AppendUint(append(to, `,"fence":`...), e.Fence, 10)
	to = AppendText(append(to, `,"variant":`...), e.Variant)
	to, err := AppendInstant(append(to, `,"at":`...), e.At)
	return append(to, '}'), err
}

// AppendText appends a JSON string as encoding/json writes it.
func AppendText(to []byte, text string) []byte {
	for i := range len(text) {
		switch c := text[i]; {
		case c < ' ', c > '~', c == '"', c == '\\', c == '<', c == '>', c == '&':
			escaped, _ := json.Marshal(text) // any string can be written
			return append(to, escaped...)
		}
	}
	return append(append(append(to, '"'), text...), '"')
}

// AppendInstant appends an instant as encoding/json writes it.
func AppendInstant(to []byte, t time.Time) ([]byte, error) {
	to, err := t.AppendText(append(to, '"'))
	return append(to, '"'), err
}
