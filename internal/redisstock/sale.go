package redisstock

import (
	"fmt"
	"strconv"
	"time"

	"flashsale/internal/stock"
)

// saleFields is a new sale as the hash holds it: field, value, ... Instants are
// microseconds since 1970, 0 for none; durations are nanoseconds.
func saleFields(s stock.Sale) []any {
	return []any{
		"item_id", s.ItemID,
		"title", s.Title,
		"price_cents", s.PriceCents,
		"variant", s.Variant,
		"fencing", s.Fencing, // 1 or 0
		"initial", s.Stock,
		"remaining", s.Stock,
		"accepted", 0,
		"cancelled", 0,
		"last_fence", 0,
		"limit", s.PerUserLimit,
		"starts_at", microseconds(s.StartsAt),
		"ends_at", microseconds(s.EndsAt),
		"work_min", s.Work.Min.Nanoseconds(),
		"work_max", s.Work.Max.Nanoseconds(),
		"state", "open",
	}
}

// parseSale reads a hash given as field, value, ... The state is left to who
// knows the time.
func parseSale(id string, pairs []any) (stock.Snapshot, error) {
	fields := make(saleHash, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		fields[fmt.Sprint(pairs[i])] = fmt.Sprint(pairs[i+1])
	}
	var wrong error
	number := func(name string) int64 { return fields.number(name, &wrong) }
	snapshot := stock.Snapshot{
		Sale: stock.Sale{
			ID: id, ItemID: fields["item_id"], Title: fields["title"], Variant: fields["variant"],
			PriceCents:   number("price_cents"),
			Stock:        number("initial"),
			PerUserLimit: number("limit"),
			Fencing:      number("fencing") == 1,
			StartsAt:     instant(number("starts_at")),
			EndsAt:       instant(number("ends_at")),
			Work: stock.WorkRange{
				Min: time.Duration(number("work_min")),
				Max: time.Duration(number("work_max")),
			},
		},
		Remaining: number("remaining"),
		Accepted:  number("accepted"),
		Cancelled: number("cancelled"),
		LastFence: uint64(number("last_fence")),
	}
	if _, striped := fields["remaining.0"]; striped {
		snapshot.Remaining = 0
		for n := range segments {
			snapshot.Remaining += number(fmt.Sprintf("remaining.%d", n))
		}
	}
	if wrong != nil {
		return stock.Snapshot{}, unavailable(fmt.Errorf("sale %s: %w", id, wrong))
	}
	return snapshot, nil
}

type saleHash map[string]string

func (h saleHash) number(name string, wrong *error) int64 {
	n, err := strconv.ParseInt(h[name], 10, 64)
	if err != nil && *wrong == nil {
		*wrong = fmt.Errorf("field %s: %w", name, err)
	}
	return n
}

func microseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func instant(microseconds int64) time.Time {
	if microseconds == 0 {
		return time.Time{}
	}
	return time.UnixMicro(microseconds).UTC()
}
