//go:build unix

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"flashsale/internal/kafkastock"
	"flashsale/internal/stock"
)

// TestEveryMessageTwice publishes the whole topic again, with poison in between.
func TestEveryMessageTwice(t *testing.T) {
	t.Parallel()
	in := install(t, own{})
	v, api := newVisitor(t), in.api(t)
	in.syncer(t)
	const stockOfRace, buyers = 40, 80
	for _, sale := range []string{"atomic", "none"} { // the ledger rejects some of what none sells
		v.want("201", v.createSale(api.url, sale, sale, stockOfRace, terms{}))
	}
	l := buying(t, v, []string{"atomic", "none"}, api.url)
	eventually(t, 30*time.Second, "both are sold out", func() bool { return l.count("409 sold_out") >= buyers })
	l.end()
	for _, sale := range []string{"atomic", "none"} {
		if audit := v.audit(api.url, sale); !audit.Settled || !audit.Deep.Same() {
			t.Fatalf("audit %+v, deep %+v", audit, audit.Deep)
		}
	}
	before := map[string]map[string]row{"atomic": in.rows(t, "atomic"), "none": in.rows(t, "none")}

	messages := in.topic(t, in.topics.Topics.Deductions)
	if want := len(before["atomic"]) + len(before["none"]); len(messages) < want {
		t.Fatalf("%d messages, %d rows", len(messages), want)
	}
	poison := []stock.Message{
		{Key: "atomic", Value: []byte("poison \xff")},
		{Key: "none", Value: []byte(`{"v":1,"type":"deducted","purchase_id":"gone.aaaaaaaaaaaaaaaaaaaaaaaaaa","sale_id":"gone","item_id":"gone","user_id":"u","quantity":1,"price_cents":1,"fence":0,"variant":"none","at":"2026-01-02T03:04:05Z"}`)},
	}
	publisher, err := kafkastock.NewPublisher(in.topics)
	if err != nil {
		t.Fatal(err)
	}
	defer publisher.Close()
	half := len(messages) / 2
	if err := publisher.Publish(t.Context(), slices.Concat(messages[:half], poison, messages[half:])); err != nil {
		t.Fatal(err)
	}

	// What is sold next comes after all that in its partition, so once it is
	// in the ledger the rest has been dealt with. Every sale has its partition
	// by its ID.
	for _, sale := range []string{"atomic", "none"} {
		last := stock.Event{Version: stock.EventVersion, Type: stock.Deducted, PurchaseID: stock.PurchaseID(sale, "last", "last"), SaleID: sale,
			ItemID: sale, UserID: "last", Quantity: 1, PriceCents: 1, Variant: sale, At: time.Now().UTC()}
		if err := publisher.Publish(t.Context(), []stock.Message{encoded(t, last)}); err != nil {
			t.Fatal(err)
		}
		eventually(t, time.Minute, "the syncer is through with "+sale, func() bool { return len(in.rows(t, sale)) == len(before[sale])+1 })
		after := in.rows(t, sale)
		if r := after[last.PurchaseID]; r.status != "rejected" {
			t.Errorf("sold out, but %+v", r)
		}
		delete(after, last.PurchaseID)
		if !maps.Equal(after, before[sale]) {
			t.Errorf("%s: rows were %v, are %v", sale, before[sale], after)
		}
		if left := in.left(t, sale); left != 0 {
			t.Errorf("%s: %d units left", sale, left)
		}
	}
	in.wantDead(t, poison)
}

// wantDead wants exactly these among the dead letters, byte by byte.
func (in *installation) wantDead(t testing.TB, poison []stock.Message) {
	t.Helper()
	var dead []stock.Message
	eventually(t, 30*time.Second, "the poison is buried", func() bool {
		dead = in.topic(t, in.topics.Topics.Dead)
		return len(dead) >= len(poison)
	})
	for _, p := range poison {
		found := slices.ContainsFunc(dead, func(m stock.Message) bool { return m.Key == p.Key && bytes.Equal(m.Value, p.Value) })
		if !found || len(dead) != len(poison) {
			t.Errorf("%d dead letters, %q is among them: %t", len(dead), p.Value, found)
		}
	}
}

func encoded(t testing.TB, event stock.Event) stock.Message {
	t.Helper()
	value, err := json.Marshal(event)
	if err != nil {
		t.Fatal(err)
	}
	return stock.Message{Key: event.SaleID, Value: value}
}

// topic reads all there is in a topic, past the programs' own code.
func (in *installation) topic(t testing.TB, topic string) (messages []stock.Message) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	partitions, err := kafka.DefaultDialer.LookupPartitions(ctx, "tcp", in.topics.Brokers[0], topic)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range partitions {
		read, err := in.partition(ctx, topic, p.ID)
		if err != nil {
			t.Fatal(err)
		}
		messages = append(messages, read...)
	}
	return messages
}

func (in *installation) partition(ctx context.Context, topic string, id int) (messages []stock.Message, err error) {
	conn, err := kafka.DialLeader(ctx, "tcp", in.topics.Brokers[0], topic, id)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		return nil, err
	}
	next, end, err := conn.ReadOffsets()
	if err != nil {
		return nil, err
	}
	for next < end {
		if _, err := conn.Seek(next, kafka.SeekAbsolute); err != nil {
			return nil, err
		}
		batch := conn.ReadBatch(1, 8<<20)
		for {
			m, err := batch.ReadMessage()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				batch.Close()
				return nil, err
			}
			messages = append(messages, stock.Message{Key: string(m.Key), Value: m.Value})
			next = m.Offset + 1
		}
		if err := batch.Close(); err != nil {
			return nil, err
		}
	}
	return messages, nil
}
