package relay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"flashsale/internal/backoff"
	"flashsale/internal/stock"
)

// errYield ends a leadership that has got nowhere for too long.
var errYield = errors.New("relay: too many failures")

// deleteTimeout bounds the deletion of what is acknowledged, which is not given
// up when the leadership ends: it spares the next leader repetitions.
const deleteTimeout = 2 * time.Second

// leader moves the entries of one shard while it holds the shard's lock.
type leader struct {
	Options
	log   *slog.Logger
	shard int
	want  int      // entries to read, so that they make about a batch of messages
	acked []string // acknowledged by Kafka, perhaps still in the outbox
}

// lead works until ctx ends, or until it has failed for longer than Yield.
func (l *leader) lead(ctx context.Context) error {
	var failing streak
	for {
		err := l.step(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			if n := failing.end(); n > 0 {
				l.log.Info("outbox moves again", "failures", n)
			}
			continue
		case failing.begin():
			l.log.Warn("outbox does not move", "error", err)
		case time.Since(failing.since) >= l.Yield:
			return fmt.Errorf("%w: %w", errYield, err)
		}
		backoff.Wait(ctx, failing.delay(l.RetryMin, l.RetryMax))
	}
}

// step moves what the outbox has right now. It always reads from the start:
// entries go only once they are acknowledged, so the first one left is the
// first one to publish, whatever happened before.
func (l *leader) step(ctx context.Context) error {
	if err := l.deleteAcked(ctx); err != nil {
		return err
	}
	entries, err := l.Outbox.Read(ctx, l.shard, "", l.want, l.Block)
	if err != nil {
		return fmt.Errorf("relay: read: %w", err)
	}
	read, events := time.Now(), l.adapt(entries)
	for len(entries) > 0 {
		n, messages := l.batch(entries)
		if err := l.forward(ctx, entries[:n], messages); err != nil {
			return err
		}
		entries = entries[n:]
	}
	if 0 < events && events < l.Batch {
		backoff.Wait(ctx, l.Pace-time.Since(read))
	}
	return nil
}

// adapt keeps a read to about one batch of messages: an entry holds one event,
// or hundreds when purchases were combined. It counts the events.
func (l *leader) adapt(entries []stock.OutboxEntry) (events int) {
	for _, entry := range entries {
		events += len(entry.Events)
	}
	if events > 0 {
		l.want = min(max(l.Batch*len(entries)/events, 1), l.Batch)
	}
	return events
}

// batch takes entries, at least one, for about Batch messages.
func (l *leader) batch(entries []stock.OutboxEntry) (n int, messages []stock.Message) {
	messages = make([]stock.Message, 0, l.Batch)
	for _, entry := range entries {
		if n > 0 && len(messages)+len(entry.Events) > l.Batch {
			break
		}
		for _, event := range entry.Events {
			messages = append(messages, l.message(entry.ID, event))
		}
		n++
	}
	return n, messages
}

// forward publishes entries, then deletes exactly those. When the deletion
// fails they are not published again: deleting is tried first, next time.
func (l *leader) forward(ctx context.Context, entries []stock.OutboxEntry, messages []stock.Message) error {
	if len(messages) > 0 {
		if err := l.Publisher.Publish(ctx, messages); err != nil {
			return fmt.Errorf("relay: publish: %w", err)
		}
	}
	for _, entry := range entries {
		l.acked = append(l.acked, entry.ID)
	}
	return l.deleteAcked(ctx)
}

func (l *leader) deleteAcked(ctx context.Context) error {
	if len(l.acked) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deleteTimeout)
	defer cancel()
	if err := l.Outbox.Delete(ctx, l.shard, l.acked); err != nil {
		return fmt.Errorf("relay: delete: %w", err)
	}
	l.acked = l.acked[:0]
	return nil
}
