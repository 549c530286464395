package kafkastock_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"flashsale/internal/servers/servertest"
	"flashsale/internal/stock"
)

// BenchmarkPublish is one relay: calls one after the other, each awaited.
func BenchmarkPublish(b *testing.B) {
	for _, size := range []int{1, 50, 500} {
		b.Run(fmt.Sprintf("batch=%d", size), func(b *testing.B) {
			p := publisher(b, installation(b, servertest.Kafka(b)))
			messages := payload(size)
			for b.Loop() {
				if err := p.Publish(b.Context(), messages); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(size)*float64(b.N)/b.Elapsed().Seconds(), "messages/s")
		})
	}
}

// BenchmarkFetch is one syncer without a ledger: fetch and commit.
func BenchmarkFetch(b *testing.B) {
	o := installation(b, servertest.Kafka(b))
	p, s := publisher(b, o), source(b, o)
	const size = 500
	fetched := 0
	for b.Loop() {
		b.StopTimer()
		publish(b, p, payload(size))
		b.StartTimer()
		got, err := s.Fetch(b.Context(), size, 5*time.Millisecond)
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Commit(b.Context(), got); err != nil {
			b.Fatal(err)
		}
		fetched += len(got)
	}
	b.ReportMetric(float64(fetched)/b.Elapsed().Seconds(), "messages/s")
}

// payload is n events of the usual size, all of one sale.
func payload(n int) []stock.Message {
	value := bytes.Repeat([]byte("0123456789"), 30)
	messages := make([]stock.Message, n)
	for i := range messages {
		messages[i] = stock.Message{Key: "sale-1", Value: value}
	}
	return messages
}
