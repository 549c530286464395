package redisstock

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	"flashsale/internal/stock"
)

// What is left stands once in a reply; each who was accepted is told what was left after him.
func TestVerdictsOnABatch(t *testing.T) {
	batch := []stock.Deduction{{Quantity: 3}, {Quantity: 1}, {Quantity: 2}, {Quantity: 5}, {Quantity: 1}}
	for _, test := range []struct {
		reply []any
		want  []stock.Result // nil: no answer to this batch
	}{
		{[]any{"decided", int64(10)}, []stock.Result{{Remaining: 19}, {Remaining: 18}, {Remaining: 16}, {Remaining: 11}, {Remaining: 10}}},
		{[]any{"decided", int64(0), int64(1), "over_limit", int64(2), int64(4), "sold_out", ""},
			[]stock.Result{{Err: &stock.OverLimitError{Limit: 2}}, {Remaining: 3}, {Remaining: 1}, {Err: stock.ErrSoldOut}, {Remaining: 0}}},
		{[]any{"decided", int64(7), int64(1), "closed", "", int64(2), "scheduled", "", int64(3), "already_bought", "hot.x",
			int64(4), "known", `{"quantity":5,"remaining":9,"fence":0}`, int64(5), "known", `{"quantity":2,"remaining":9}`},
			[]stock.Result{{Err: stock.ErrSaleClosed}, {Err: stock.ErrSaleNotStarted}, {Err: &stock.AlreadyBoughtError{PurchaseID: "hot.x"}},
				{Remaining: 9, Replayed: true}, {Err: stock.ErrKeyReused}}},
		{[]any{"decided"}, nil},
		{[]any{"decided", "10"}, nil},
		{[]any{"decided", int64(10), int64(1)}, nil},
		{[]any{"decided", int64(10), int64(6), "sold_out", ""}, nil},
		{[]any{"decided", int64(10), int64(2), "sold_out", "", int64(1), "sold_out", ""}, nil},
		{[]any{"decided", int64(10), int64(2), "perhaps", ""}, nil},
		{[]any{"decided", int64(10), int64(2), "known", "no JSON"}, nil},
	} {
		got, err := decided(batch, 0, test.reply)
		if test.want == nil {
			if !errors.Is(err, stock.ErrUnavailable) {
				t.Errorf("%v: %v, error is %v", test.reply, got, err)
			}
			continue
		}
		if err != nil || fmt.Sprint(got) != fmt.Sprint(test.want) || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%v:\ngot  %v (%v)\nwant %v", test.reply, got, err, test.want)
		}
	}
}
