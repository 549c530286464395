package stock

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"
)

// asEncodingJSON fails unless an event is written as encoding/json writes it,
// after what is there already.
func asEncodingJSON(t *testing.T, e Event) {
	t.Helper()
	want, wrong := json.Marshal(e)
	got, err := e.AppendJSON([]byte("before"))
	if (err == nil) != (wrong == nil) {
		t.Fatalf("%+v: error is %v, encoding/json says %v", e, err, wrong)
	}
	if rest, ok := bytes.CutPrefix(got, []byte("before")); wrong == nil && (!ok || !bytes.Equal(rest, want)) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestAnEventsJSON(t *testing.T) {
	at := time.Date(2030, 1, 2, 3, 4, 5, 678901000, time.UTC)
	d := Deduction{PurchaseID: PurchaseID("hot", "ann", "k"), SaleID: "hot", ItemID: "lamp", UserID: "a.b-C_9@d", Quantity: 2, PriceCents: 49900, Variant: "atomic", At: at}
	const want = `{"v":1,"type":"deducted","purchase_id":"hot.6vhptxxyf3lyznmclhjmt4j2oy","sale_id":"hot","item_id":"lamp","user_id":"a.b-C_9@d","quantity":2,"price_cents":49900,"fence":1764562063000001,"variant":"atomic","at":"2030-01-02T03:04:05.678901Z"}`
	got, err := d.Event(1764562063000001).AppendJSON(nil)
	if err != nil || string(got) != want {
		t.Errorf("got  %s (%v)\nwant %s", got, err, want)
	}
	asEncodingJSON(t, Event{})
	asEncodingJSON(t, Event{Quantity: -1, PriceCents: -1 << 63, Fence: 1<<64 - 1, At: at.In(time.FixedZone("east", 3600))})
	asEncodingJSON(t, Event{At: at.AddDate(9000, 0, 0)})
	for c := range rune(0x180) {
		asEncodingJSON(t, Event{UserID: string(c), Variant: string([]byte{'a', byte(c)})})
	}
	asEncodingJSON(t, Event{UserID: "\u2028\u2029\U0001f4a9"})
}

func FuzzEventJSON(f *testing.F) {
	f.Add("hot.abc", "hot", "lamp", "ann", int64(1), int64(49900), uint64(7), "atomic", int64(1764562063), int64(1000))
	f.Fuzz(func(t *testing.T, purchase, sale, item, user string, quantity, price int64, fence uint64, variant string, seconds, nanoseconds int64) {
		asEncodingJSON(t, Event{
			Version: EventVersion, Type: Deducted, PurchaseID: purchase, SaleID: sale, ItemID: item, UserID: user,
			Quantity: quantity, PriceCents: price, Fence: fence, Variant: variant, At: time.Unix(seconds%1e12, nanoseconds).UTC(),
		})
	})
}
