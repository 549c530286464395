package httpapi

import (
	"encoding/json"
	"math"
	"testing"
)

func receiptAsEncodingJSON(t *testing.T, r receiptBody) {
	t.Helper()
	want, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.appendJSON(nil); string(got) != string(want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestReceiptsAreWrittenAsEncodingJSONWritesThem(t *testing.T) {
	const golden = `{"purchase_id":"hot.abc","sale_id":"hot","quantity":2,"remaining":7,"fence":1764562063000001}`
	if got := (receiptBody{"hot.abc", "hot", 2, 7, 1764562063000001}).appendJSON(nil); string(got) != golden {
		t.Errorf("got  %s\nwant %s", got, golden)
	}
	receiptAsEncodingJSON(t, receiptBody{})
	receiptAsEncodingJSON(t, receiptBody{"\"\\<\u2028\xff", "\x00", math.MinInt64, math.MaxInt64, math.MaxUint64})
}

func FuzzReceipt(f *testing.F) {
	f.Add("hot.abc", "hot", int64(1), int64(0), uint64(0))
	f.Fuzz(func(t *testing.T, purchase, sale string, quantity, remaining int64, fence uint64) {
		receiptAsEncodingJSON(t, receiptBody{purchase, sale, quantity, remaining, fence})
	})
}
