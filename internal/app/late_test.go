package app

import (
	"bufio"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// BenchmarkLateBuyers measures what "sold out" costs over HTTP once the last unit
// is gone: remembered, as the API answers it for a moment, and asked of Redis, as
// it has to for every buyer who sends an Idempotency-Key. Both are measured in
// turn; remembered/asked is how many times as many are answered.
func BenchmarkLateBuyers(b *testing.B) {
	v, _ := startAPI(b, migrated(b, real(b)))
	for _, variant := range []string{"atomic", "watchdog-combining"} {
		v.createSale(variant, variant, 1)
		v.do(201, "POST", "/v1/sales/"+variant+"/purchases", purchaseOf("first", 1))
		for _, clients := range []int{1, 64} {
			b.Run(fmt.Sprintf("variant=%s/clients=%d", variant, clients), func(b *testing.B) {
				const turn = 2048 // buyers
				late := lateBuyers(b, v, variant, clients)
				late(turn, "")
				var remembered, asked time.Duration
				for b.Loop() {
					remembered += late(turn, "")
					asked += late(turn, "Idempotency-Key: mine\r\n")
				}
				perS := func(took time.Duration) float64 { return float64(b.N*turn) / took.Seconds() }
				b.ReportMetric(perS(remembered), "remembered/s")
				b.ReportMetric(perS(asked), "asked/s")
				b.ReportMetric(asked.Seconds()/remembered.Seconds(), "remembered/asked")
			})
		}
	}
}

func migrated(b *testing.B, cfg Config) Config {
	migrate(b, cfg)
	return cfg
}

// lateBuyers sends n requests over the clients' connections, and says how long
// all of them took to be refused.
func lateBuyers(b *testing.B, v *visitor, sale string, clients int) func(n int, header string) time.Duration {
	connections := make([]net.Conn, clients)
	for i := range connections {
		c, err := net.Dial("tcp", strings.TrimPrefix(v.base, "http://"))
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { c.Close() })
		connections[i] = c
	}
	return func(n int, header string) time.Duration {
		var all sync.WaitGroup
		began := time.Now()
		for i, c := range connections {
			body := purchaseOf(fmt.Sprint("late-", i), 1)
			request := fmt.Appendf(nil, "POST /v1/sales/%s/purchases HTTP/1.1\r\nHost: flashsale\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s",
				sale, header, len(body), body)
			all.Go(func() {
				answers := bufio.NewReader(c)
				for range n / clients {
					if _, err := c.Write(request); err != nil {
						b.Error(err)
						return
					}
					if status, err := statusOf(answers); status != 409 || err != nil {
						b.Errorf("status %d, %v", status, err)
						return
					}
				}
			})
		}
		all.Wait()
		return time.Since(began)
	}
}

// statusOf reads one answer; net/http's client would cost more than what is measured.
func statusOf(answers *bufio.Reader) (status int, err error) {
	length := 0
	for {
		line, err := answers.ReadString('\n')
		if err != nil {
			return 0, err
		}
		line = strings.TrimRight(line, "\r\n")
		if rest, ok := strings.CutPrefix(line, "HTTP/1.1 "); ok {
			status, _ = strconv.Atoi(rest[:3])
		}
		if rest, ok := strings.CutPrefix(line, "Content-Length: "); ok {
			length, _ = strconv.Atoi(rest)
		}
		if line == "" {
			_, err = answers.Discard(length)
			return status, err
		}
	}
}
