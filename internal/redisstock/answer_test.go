package redisstock

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"flashsale/internal/stock"
)

func TestAnswersAreWrittenAsEncodingJSONWritesThem(t *testing.T) {
	at := time.Date(2030, 1, 2, 3, 4, 5, 678901000, time.UTC)
	const golden = `{"user":"a.b-C_9@d","quantity":2,"state":"accepted","price_cents":49900,"fence":1764562063000001,"at":"2030-01-02T03:04:05.678901Z","remaining":7}`
	if got, err := wholeAnswer(stock.Deduction{UserID: "a.b-C_9@d", Quantity: 2, PriceCents: 49900, At: at}, 1764562063000001, 7); got != golden || err != nil {
		t.Errorf("got  %s (%v)\nwant %s", got, err, golden)
	}
	for _, d := range []stock.Deduction{
		{At: at},
		{UserID: "\"<\u2028\xff", Quantity: -1 << 63, PriceCents: 1<<63 - 1, At: at.In(time.FixedZone("", 5400))},
	} {
		for _, remaining := range []int64{0, 1_000_000_000, -1} {
			want, err := json.Marshal(answer{User: d.UserID, Quantity: d.Quantity, State: "accepted", PriceCents: d.PriceCents, Fence: 1<<64 - 1, At: d.At, Remaining: remaining})
			if err != nil {
				t.Fatal(err)
			}
			if got, err := wholeAnswer(d, 1<<64-1, remaining); got != string(want) || err != nil {
				t.Errorf("got  %s (%v)\nwant %s", got, err, want)
			}
		}
		whole, _ := wholeAnswer(d, 5, 0)
		if open, err := openAnswer(d, 5); open != strings.TrimSuffix(whole, `,"remaining":0}`) || err != nil {
			t.Errorf("open answer is %s (%v)", open, err)
		}
	}
	if _, err := wholeAnswer(stock.Deduction{At: at.AddDate(9000, 0, 0)}, 0, 0); err == nil {
		t.Error("an instant that JSON can't hold is written")
	}
}
