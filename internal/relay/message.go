package relay

import (
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
	var sale struct {
		ID string `json:"sale_id"`
	}
	if err := json.Unmarshal(event, &sale); err != nil || !stock.ValidID(sale.ID) {
		l.log.Warn("outbox entry is no event", "entry", entryID, "bytes", len(event))
		return stock.Message{Key: LockKey(l.shard), Value: event}
	}
	return stock.Message{Key: sale.ID, Value: event}
}
