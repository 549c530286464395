package redisstock

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"flashsale/internal/stock"
)

// anEntry is an outbox entry of n purchases, as the scripts write it.
func anEntry(n int) string {
	events := make([]string, n)
	for i := range events {
		events[i] = fmt.Sprintf(`{"v":1,"type":"deducted","purchase_id":"hot.%026d","sale_id":"hot","item_id":"hot","user_id":"user-%d","quantity":1,"price_cents":49900,"fence":0,"variant":"atomic","at":"2030-01-02T03:04:05.678901Z"}`, i, i)
	}
	return "[" + strings.Join(events, ",") + "]"
}

// strictly is split without the short cut; nil: no array with anything in it.
func strictly(data []byte) [][]byte {
	var elements []json.RawMessage
	if json.Unmarshal(data, &elements) != nil || len(elements) == 0 {
		return nil
	}
	events := make([][]byte, len(elements))
	for i, e := range elements {
		events[i] = e
	}
	return events
}

// splitAsStrict says whether the short cut takes an entry, and fails unless the
// long way finds the same events.
func splitAsStrict(t *testing.T, text string) (taken bool) {
	t.Helper()
	got := splitObjects([]byte(text))
	if got == nil {
		return false
	}
	if want := strictly([]byte(text)); !reflect.DeepEqual(got, want) {
		t.Errorf("%q: got %q, want %q", text, got, want)
	}
	return true
}

// Every text that is a byte away from an entry, be the byte another, missing or
// one too many.
func TestNeighboursOfEntries(t *testing.T) {
	for _, entry := range []string{anEntry(1), anEntry(2)} {
		if !splitAsStrict(t, entry) {
			t.Errorf("%s is not split", entry)
		}
		taken := 0
		try := func(parts ...string) {
			if splitAsStrict(t, strings.Join(parts, "")) {
				taken++
			}
		}
		for at := range len(entry) {
			before, here, after := entry[:at], entry[at:at+1], entry[at+1:]
			try(before, after)
			try(before)
			for c := range 256 {
				other := string([]byte{byte(c)})
				try(before, other, after)
				try(before, other, here, after)
				try(before, other, other, after)
			}
		}
		if all := 3 * 256 * len(entry); taken < all/100 || taken > all*3/4 {
			t.Errorf("%s: %d of %d neighbours are split", entry, taken, all)
		}
	}
}

func FuzzSplitObjects(f *testing.F) {
	for _, text := range []string{anEntry(2), `[{"a":1},{"b":"}{,\\"]"}]`, `[{"a":{}}]`, `[{"a":[1]}]`, `[1]`, `[]`, `{}`, `[{"a":"\\\\"},{}]`, `[{} ,{}]`, `[{},{}]`, ``} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { splitAsStrict(t, text) })
}

// BenchmarkSplit measures the short cut and the long way in turn: strict/split is
// how many times as long the long way takes.
func BenchmarkSplit(b *testing.B) {
	for _, events := range []int{1, 64} {
		b.Run(fmt.Sprintf("events=%d", events), func(b *testing.B) {
			const turn = 20 // entries, so that reading the clock costs nothing
			data := []byte(anEntry(events))
			var split, strict time.Duration
			b.ReportAllocs()
			for b.Loop() {
				began := time.Now()
				for range turn {
					if len(splitObjects(data)) != events {
						b.Fatal("not split")
					}
				}
				between := time.Now()
				for range turn {
					if len(strictly(data)) != events {
						b.Fatal("not split")
					}
				}
				split, strict = split+between.Sub(began), strict+time.Since(between)
			}
			b.ReportMetric(float64(split.Nanoseconds())/float64(b.N*turn), "split-ns")
			b.ReportMetric(float64(strict.Nanoseconds())/float64(b.N*turn), "strict-ns")
			b.ReportMetric(strict.Seconds()/split.Seconds(), "strict/split")
		})
	}
}

// The short cut knows the layout of what the counters write.
func TestWhatTheCountersWriteIsSplitTheShortWay(t *testing.T) {
	d := stock.Deduction{PurchaseID: stock.PurchaseID("hot", "ann", "k"), SaleID: "hot", ItemID: "lamp", UserID: "a.b@c", Quantity: 3, PriceCents: 1, Variant: "atomic", At: time.Now().UTC()}
	for _, fence := range []uint64{0, 1 << 60} {
		event, err := eventOf(d, fence)
		if err != nil {
			t.Fatal(err)
		}
		if got := splitObjects([]byte("[" + event + "," + event + "]")); len(got) != 2 || string(got[0]) != event || string(got[1]) != event {
			t.Errorf("%s is split into %q", event, got)
		}
		for _, foreign := range []string{`{"b":}`, `{}}`, ``} { // an entry with one of these is nobody's
			entry := "[" + event + "," + foreign + "]"
			if got := split(map[string]any{"d": entry}); len(got) != 1 || string(got[0]) != entry {
				t.Errorf("%s is split into %q", entry, got)
			}
		}
	}
}
