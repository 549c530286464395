package stocktest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"flashsale/internal/rediskey"
	"flashsale/internal/stock"
)

// OutboxSuite checks an Outbox, filled by its Counter.
func OutboxSuite(t *testing.T, newRig func(t *testing.T) Rig) {
	for name, test := range map[string]func(*testing.T, Rig){
		"empty":                            outboxEmpty,
		"in order, after an ID":            outboxOrder,
		"deletes exactly these":            outboxDelete,
		"an entry read later is no repeat": outboxContinues,
		"wakes up for a new entry":         outboxWakes,
		"stops waiting with its context":   outboxCancelled,
		"depth and oldest":                 outboxDepth,
		"shards are apart":                 outboxShards,
	} {
		t.Run(name, func(t *testing.T) { test(t, newRig(t)) })
	}
}

const waitLong = 30 * time.Second // never waited for in full

var shard = rediskey.Shard(SaleID)

func read(t *testing.T, rig Rig, shard int, after string, count int) []stock.OutboxEntry {
	t.Helper()
	entries, err := rig.Outbox.Read(t.Context(), shard, after, count, 0)
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	return entries
}

// outboxEvents are all events in the sale's shard.
func outboxEvents(t *testing.T, rig Rig, saleID string) []stock.Event {
	t.Helper()
	var events []stock.Event
	for _, entry := range read(t, rig, rediskey.Shard(saleID), "", 10_000) {
		for _, text := range entry.Events {
			var event stock.Event
			if err := json.Unmarshal(text, &event); err != nil {
				t.Fatalf("event %q: %v", text, err)
			}
			events = append(events, event)
		}
	}
	return events
}

// fill makes n entries by as many users, and returns their IDs.
func fill(t *testing.T, rig Rig, n int) []string {
	t.Helper()
	sale := preload(t, rig, func(s *stock.Sale) { s.Stock = 1000 })
	for user := range n {
		deduct(t, rig, 0, deduction(sale, fmt.Sprintf("user-%d", user), 1))
	}
	return ids(read(t, rig, shard, "", 1000))
}

func ids(entries []stock.OutboxEntry) []string {
	var ids []string
	for _, entry := range entries {
		ids = append(ids, entry.ID)
	}
	return ids
}

func outboxEmpty(t *testing.T, rig Rig) {
	if entries := read(t, rig, shard, "", 10); len(entries) > 0 {
		t.Errorf("entries are %v", entries)
	}
	if entries, err := rig.Outbox.Read(t.Context(), shard, "", 10, 2*time.Millisecond); err != nil || len(entries) > 0 {
		t.Errorf("after waiting: entries are %v, error %v", entries, err)
	}
	if err := rig.Outbox.Delete(t.Context(), shard, nil); err != nil {
		t.Errorf("delete nothing: %v", err)
	}
	if entries, oldest, err := rig.Outbox.Depth(t.Context(), shard); entries != 0 || !oldest.IsZero() || err != nil {
		t.Errorf("depth is %d, oldest %v, error %v", entries, oldest, err)
	}
}

func outboxOrder(t *testing.T, rig Rig) {
	all := fill(t, rig, 5)
	if len(all) != 5 {
		t.Fatalf("%d entries, want 5", len(all))
	}
	for i, event := range outboxEvents(t, rig, SaleID) {
		if want := fmt.Sprintf("user-%d", i); event.UserID != want {
			t.Errorf("event %d is of %s, want %s", i, event.UserID, want)
		}
	}
	if got := ids(read(t, rig, shard, "", 2)); !slices.Equal(got, all[:2]) {
		t.Errorf("first two are %v, want %v", got, all[:2])
	}
	if got := ids(read(t, rig, shard, all[1], 10)); !slices.Equal(got, all[2:]) {
		t.Errorf("after the second come %v, want %v", got, all[2:])
	}
}

func outboxDelete(t *testing.T, rig Rig) {
	all := fill(t, rig, 5)
	for range 2 { // the second time there is nothing left of them
		if err := rig.Outbox.Delete(t.Context(), shard, []string{all[0], all[2], all[3]}); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := ids(read(t, rig, shard, "", 10)), []string{all[1], all[4]}; !slices.Equal(got, want) {
		t.Errorf("left are %v, want %v", got, want)
	}
}

func outboxContinues(t *testing.T, rig Rig) {
	all := fill(t, rig, 3)
	if err := rig.Outbox.Delete(t.Context(), shard, all); err != nil {
		t.Fatal(err)
	}
	more := fill(t, rig, 4) // user-0 to user-2 again: replays, no entries
	if len(more) != 1 || slices.Contains(all, more[0]) {
		t.Fatalf("entries are %v, want one that is not of %v", more, all)
	}
	if got := ids(read(t, rig, shard, all[2], 10)); !slices.Equal(got, more) {
		t.Errorf("after the deleted ones come %v, want %v", got, more)
	}
}

func outboxWakes(t *testing.T, rig Rig) {
	sale := preload(t, rig, nil)
	woken := make(chan []stock.OutboxEntry, 1)
	go func() {
		entries, err := rig.Outbox.Read(t.Context(), shard, "", 10, waitLong)
		if err != nil {
			t.Errorf("read: %v", err)
		}
		woken <- entries
	}()
	deduct(t, rig, 0, deduction(sale, "ann", 1))
	select {
	case entries := <-woken:
		if len(entries) != 1 {
			t.Errorf("woken with %d entries, want 1", len(entries))
		}
	case <-time.After(waitLong / 2):
		t.Error("still waiting")
	}
}

func outboxCancelled(t *testing.T, rig Rig) {
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() {
		_, err := rig.Outbox.Read(ctx, shard, "", 10, waitLong)
		stopped <- err
	}()
	cancel()
	select {
	case err := <-stopped:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error is %v, want the context's", err)
		}
	case <-time.After(waitLong / 2):
		t.Error("still waiting")
	}
}

func outboxDepth(t *testing.T, rig Rig) {
	before := time.Now().Add(-time.Minute)
	all := fill(t, rig, 3)
	entries, oldest, err := rig.Outbox.Depth(t.Context(), shard)
	if err != nil || entries != 3 {
		t.Errorf("depth is %d, error %v, want 3", entries, err)
	}
	if oldest.Before(before) || oldest.After(time.Now().Add(time.Minute)) {
		t.Errorf("oldest is of %v, want about now", oldest)
	}
	if err := rig.Outbox.Delete(t.Context(), shard, all[:1]); err != nil {
		t.Fatal(err)
	}
	if entries, later, _ := rig.Outbox.Depth(t.Context(), shard); entries != 2 || later.Before(oldest) {
		t.Errorf("depth is %d, oldest %v, want 2, not before %v", entries, later, oldest)
	}
}

func outboxShards(t *testing.T, rig Rig) {
	fill(t, rig, 1)
	for other := range rediskey.Shards {
		if n := len(read(t, rig, other, "", 10)); n > 0 != (other == shard) {
			t.Errorf("shard %d holds %d entries", other, n)
		}
	}
}
