package redisstock

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"flashsale/internal/rediskey"
	"flashsale/internal/stock"
)

// waitSlice is the longest single wait of Read: the client does not end a wait
// when its context does.
const waitSlice = 250 * time.Millisecond

// Outbox reads the streams that the counters' scripts append to. It is safe
// for concurrent use.
type Outbox struct {
	client redis.UniversalClient
	keys   rediskey.Keys
}

// NewOutbox makes an Outbox on client, on the same keys as its Store.
func NewOutbox(client redis.UniversalClient, options Options) *Outbox {
	return &Outbox{client: client, keys: options.Keys}
}

var _ stock.Outbox = (*Outbox)(nil)

// Read returns the entries after an ID; see stock.Outbox.
func (o *Outbox) Read(ctx context.Context, shard int, after string, count int, block time.Duration) ([]stock.OutboxEntry, error) {
	if after == "" {
		after = "0"
	}
	for deadline := time.Now().Add(block); ; {
		if ctx.Err() != nil {
			return nil, unavailable(context.Cause(ctx))
		}
		wait := min(time.Until(deadline), waitSlice)
		entries, err := o.read(ctx, shard, after, count, wait)
		if err != nil || len(entries) > 0 || !time.Now().Before(deadline) {
			return entries, err
		}
	}
}

func (o *Outbox) read(ctx context.Context, shard int, after string, count int, wait time.Duration) ([]stock.OutboxEntry, error) {
	// To Redis, waiting 0 ms means for ever; to the client, a negative wait
	// means not at all.
	if wait < time.Millisecond {
		wait = -1
	}
	streams, err := o.client.XRead(ctx, &redis.XReadArgs{
		Streams: []string{o.keys.Outbox(shard), after}, Count: int64(count), Block: wait,
	}).Result()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	if err != nil {
		return nil, unavailable(err)
	}
	var entries []stock.OutboxEntry
	for _, stream := range streams {
		for _, message := range stream.Messages {
			entries = append(entries, stock.OutboxEntry{ID: message.ID, Events: split(message.Values)})
		}
	}
	return entries, nil
}

// split takes an entry apart into its events. What can't be taken apart is
// passed on whole, as one: the syncer puts it aside where people can see it,
// and no entry vanishes on the way there.
func split(values map[string]any) [][]byte {
	text, ok := values["d"].(string)
	if !ok {
		whole, _ := json.Marshal(values) // strings only: can't fail
		return [][]byte{whole}
	}
	data := []byte(text)
	if events := splitObjects(data); events != nil {
		return events
	}
	var elements []json.RawMessage
	if err := json.Unmarshal(data, &elements); err != nil || len(elements) == 0 {
		return [][]byte{data}
	}
	events := make([][]byte, len(elements))
	for i, element := range elements {
		events[i] = element
	}
	return events
}

// splitObjects takes apart an array of events without space between them, as the
// counters write them; nil for anything else. What it takes is known to be valid
// JSON without being read twice: every purchase comes through here.
func splitObjects(data []byte) (events [][]byte) {
	if len(data) == 0 || data[0] != '[' {
		return nil
	}
	for rest := data[1:]; ; {
		end := endOfEvent(rest)
		if end < 0 || end == len(rest) {
			return nil
		}
		if events == nil { // most are as long as the first
			events = make([][]byte, 0, len(rest)/end+1)
		}
		events = append(events, rest[:end:end])
		switch rest = rest[end:]; {
		case len(rest) == 1 && rest[0] == ']':
			return events
		case rest[0] != ',':
			return nil
		}
		rest = rest[1:]
	}
}

// eventLayout is what stands between an event's values, and whether the value
// that follows is a text; see stock.Event.
var eventLayout = []struct {
	before string
	text   bool
}{
	{`{"v":`, false}, {`,"type":"`, true}, {`","purchase_id":"`, true}, {`","sale_id":"`, true}, {`","item_id":"`, true}, {`","user_id":"`, true},
	{`","quantity":`, false}, {`,"price_cents":`, false}, {`,"fence":`, false}, {`,"variant":"`, true}, {`","at":"`, true},
}

// endOfEvent is where an event ends that data begins with, as a counter writes it,
// all of whose texts stand for themselves; -1 if it is anything else.
func endOfEvent(data []byte) int {
	at := 0
	for _, part := range eventLayout {
		if !bytes.HasPrefix(data[at:], []byte(part.before)) {
			return -1
		}
		at += len(part.before)
		start := at
		if part.text {
			for at < len(data) && data[at] != '"' {
				if c := data[at]; c < ' ' || c > '~' || c == '\\' {
					return -1
				}
				at++
			}
			continue
		}
		for at < len(data) && '0' <= data[at] && data[at] <= '9' {
			at++
		}
		if digits := at - start; digits == 0 || digits > 1 && data[start] == '0' {
			return -1
		}
	}
	if !bytes.HasPrefix(data[at:], []byte(`"}`)) {
		return -1
	}
	return at + len(`"}`)
}

// Delete removes exactly these entries; see stock.Outbox.
func (o *Outbox) Delete(ctx context.Context, shard int, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	if err := o.client.XDel(ctx, o.keys.Outbox(shard), ids...).Err(); err != nil {
		return unavailable(err)
	}
	return nil
}

// Depth counts a shard's entries; see stock.Outbox. The oldest entry's time is
// Redis' own, from its ID.
func (o *Outbox) Depth(ctx context.Context, shard int) (int64, time.Time, error) {
	key := o.keys.Outbox(shard)
	var length *redis.IntCmd
	var first *redis.XMessageSliceCmd
	_, err := o.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		length, first = p.XLen(ctx, key), p.XRangeN(ctx, key, "-", "+", 1)
		return nil
	})
	if err != nil {
		return 0, time.Time{}, unavailable(err)
	}
	if len(first.Val()) == 0 {
		return length.Val(), time.Time{}, nil
	}
	oldest, err := entryTime(first.Val()[0].ID)
	return length.Val(), oldest, err
}

// entryTime is the time in an entry's ID, "<milliseconds>-<sequence>".
func entryTime(id string) (time.Time, error) {
	milliseconds, _, _ := strings.Cut(id, "-")
	n, err := strconv.ParseInt(milliseconds, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("redisstock: outbox entry %q: %w", id, err)
	}
	return time.UnixMilli(n).UTC(), nil
}
