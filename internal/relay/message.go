package relay

import (
	"bytes"
	"encoding/json"

	"flashsale/internal/stock"
)

// An event of ours has a few hundred bytes. What is far larger was written by
// something else, and Kafka would refuse it for ever: its beginning is passed
// on, as evidence, so that the shard moves on.
const (
	maxEvent = 256 << 10
	evidence = 64 << 10
)

// message wraps an event as it is, whatever it is: judging it, and burying what
// makes no sense, is the syncer's job.
func (l *leader) message(entryID string, event []byte) stock.Message {
	if len(event) > maxEvent {
		l.log.Error("outbox entry is far too large to be an event, only its beginning is kept", "entry", entryID, "bytes", len(event))
		return stock.Message{Key: LockKey(l.shard), Value: event[:evidence:evidence]}
	}
	if sale, ok := plainSale(event); ok {
		return stock.Message{Key: sale, Value: event}
	}
	var sale struct {
		ID string `json:"sale_id"`
	}
	if err := json.Unmarshal(event, &sale); err != nil || !stock.ValidID(sale.ID) {
		l.log.Warn("outbox entry is no event", "entry", entryID, "bytes", len(event))
		return stock.Message{Key: LockKey(l.shard), Value: event}
	}
	return stock.Message{Key: sale.ID, Value: event}
}

// plainSale finds the sale of an event as the counters write it, without
// decoding the rest: every purchase comes through here.
func plainSale(event []byte) (saleID string, ok bool) {
	rest, ok := bytes.CutPrefix(event, []byte(`{"v":1,"type":"deducted","purchase_id":"`))
	if !ok {
		return "", false
	}
	purchase, rest, found := bytes.Cut(rest, []byte(`","sale_id":"`))
	sale, _, ended := bytes.Cut(rest, []byte(`"`))
	return string(sale), found && ended && bytes.IndexByte(purchase, '"') < 0 && stock.ValidID(string(sale))
}
