package stock

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

func goodSale() Sale {
	return Sale{
		ID: "phone-1", ItemID: "phone", Title: "Phone", PriceCents: 99900, Stock: 100, PerUserLimit: 1,
		Variant: "watchdog", Fencing: true,
	}
}

func TestSaleValidate(t *testing.T) {
	noon := time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		name   string
		change func(*Sale)
		fields []string // the wrong ones, in order
	}{
		{"good", func(s *Sale) {}, nil},
		{"smallest", func(s *Sale) { s.ID, s.ItemID, s.Title, s.PriceCents, s.Stock = "0", "a", "x", 0, 1 }, nil},
		{"largest", func(s *Sale) {
			s.ID, s.ItemID = strings.Repeat("a", 64), strings.Repeat("9", 64)
			s.Title = strings.Repeat("世", MaxTitle)
			s.PriceCents, s.Stock, s.PerUserLimit = MaxPriceCents, MaxStock, MaxStock
			s.Work = WorkRange{MaxWork, MaxWork}
		}, nil},
		{"window", func(s *Sale) { s.StartsAt, s.EndsAt = noon, noon.Add(time.Microsecond) }, nil},
		{"only an end", func(s *Sale) { s.EndsAt = noon }, nil},
		{"limit above stock", func(s *Sale) { s.PerUserLimit = 1000 }, nil},

		{"everything missing", func(s *Sale) { *s = Sale{} },
			[]string{"id", "item_id", "title", "stock", "per_user_limit", "variant"}},
		{"id with capitals", func(s *Sale) { s.ID = "Phone" }, []string{"id"}},
		{"id with dot", func(s *Sale) { s.ID = "phone.1" }, []string{"id"}},
		{"id with colon", func(s *Sale) { s.ID = "phone:buyers" }, []string{"id"}},
		{"id starts with dash", func(s *Sale) { s.ID = "-phone" }, []string{"id"}},
		{"id ends in newline", func(s *Sale) { s.ID = "phone\n" }, []string{"id"}},
		{"id too long", func(s *Sale) { s.ID = strings.Repeat("a", 65) }, []string{"id"}},
		{"item id with letter beyond ASCII", func(s *Sale) { s.ItemID = "phöne" }, []string{"item_id"}},
		{"title blank", func(s *Sale) { s.Title = " \u00a0" }, []string{"title"}},
		{"title too long", func(s *Sale) { s.Title = strings.Repeat("a", MaxTitle+1) }, []string{"title"}},
		{"title not UTF-8", func(s *Sale) { s.Title = "a\xff" }, []string{"title"}},
		{"title with newline", func(s *Sale) { s.Title = "a\nb" }, []string{"title"}},
		{"title with NUL", func(s *Sale) { s.Title = "a\x00b" }, []string{"title"}},
		{"price below", func(s *Sale) { s.PriceCents = -1 }, []string{"price_cents"}},
		{"price above", func(s *Sale) { s.PriceCents = MaxPriceCents + 1 }, []string{"price_cents"}},
		{"no stock", func(s *Sale) { s.Stock = 0 }, []string{"stock"}},
		{"stock above", func(s *Sale) { s.Stock = MaxStock + 1 }, []string{"stock"}},
		{"limit 0", func(s *Sale) { s.PerUserLimit = 0 }, []string{"per_user_limit"}},
		{"variant malformed", func(s *Sale) { s.Variant = "Watch Dog" }, []string{"variant"}},
		{"ends as it starts", func(s *Sale) { s.StartsAt, s.EndsAt = noon, noon }, []string{"ends_at"}},
		{"starts too early", func(s *Sale) { s.StartsAt = minInstant.Add(-1) }, []string{"starts_at"}},
		{"ends too late", func(s *Sale) { s.EndsAt = maxInstant }, []string{"ends_at"}},
		{"work below 0", func(s *Sale) { s.Work = WorkRange{-1, 1} }, []string{"work_ms.min"}},
		{"work too long", func(s *Sale) { s.Work = WorkRange{0, MaxWork + 1} }, []string{"work_ms.max"}},
		{"work upside down", func(s *Sale) { s.Work = WorkRange{2, 1} }, []string{"work_ms.max"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			sale := goodSale()
			test.change(&sale)
			wantFields(t, sale.Validate(), test.fields)
		})
	}
}

func TestSaleValidateFor(t *testing.T) {
	offered := []string{"none", "watchdog"}
	sale := goodSale()
	wantFields(t, sale.ValidateFor(offered), nil)
	sale.Stock = 0
	wantFields(t, sale.ValidateFor(offered), []string{"stock"})
	for _, variant := range []string{"", "zookeeper", "Not A Name"} {
		sale.Variant = variant
		wantFields(t, sale.ValidateFor(offered), []string{"stock", "variant"})
	}
}

func TestRequestValidate(t *testing.T) {
	for _, test := range []struct {
		name    string
		request Request
		fields  []string
	}{
		{"good", Request{"phone-1", "ann", 1, ""}, nil},
		{"all kinds of characters", Request{"phone-1", "Ann_b.c@d-9", MaxStock, " ~"}, nil},
		{"longest", Request{"phone-1", strings.Repeat("u", 64), 1, strings.Repeat("k", MaxKey)}, nil},
		{"everything wrong", Request{"", "", 0, "\n"}, []string{"sale_id", "user_id", "quantity", "Idempotency-Key"}},
		{"user too long", Request{"phone-1", strings.Repeat("u", 65), 1, ""}, []string{"user_id"}},
		{"user with space", Request{"phone-1", "a b", 1, ""}, []string{"user_id"}},
		{"user with newline", Request{"phone-1", "ann\n", 1, ""}, []string{"user_id"}},
		{"quantity below", Request{"phone-1", "ann", -1, ""}, []string{"quantity"}},
		{"quantity above", Request{"phone-1", "ann", MaxStock + 1, ""}, []string{"quantity"}},
		{"key too long", Request{"phone-1", "ann", 1, strings.Repeat("k", MaxKey+1)}, []string{"Idempotency-Key"}},
		{"key beyond ASCII", Request{"phone-1", "ann", 1, "ключ"}, []string{"Idempotency-Key"}},
	} {
		t.Run(test.name, func(t *testing.T) { wantFields(t, test.request.Validate(), test.fields) })
	}
}

func wantFields(t *testing.T, err error, want []string) {
	t.Helper()
	if want == nil {
		if err != nil {
			t.Errorf("error is %v, want none", err)
		}
		return
	}
	var invalid *InvalidError
	if !errors.As(err, &invalid) {
		t.Fatalf("error is %v, want an InvalidError", err)
	}
	var got []string
	for _, field := range invalid.Fields {
		got = append(got, field.Field)
		if field.Reason == "" || field.Allowed == "" {
			t.Errorf("%s has no reason or does not say what is allowed: %+v", field.Field, field)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("wrong fields are %v, want %v", got, want)
	}
}
