//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// load is purchases of one unit each, every one by another user under another
// Idempotency-Key, over connections that are kept. It writes its requests and
// reads the answers on bare sockets: on two cores, net/http's client would cost
// more than what is measured.
type load struct {
	addrs    []string // the connections take turns
	sale     string
	clients  int
	first    int           // number of the first user
	duration time.Duration // no request is begun after it
	requests int           // at most so many; 0: no limit
	rate     float64       // arrivals a second, whoever is still waiting; 0: each client asks again once it is answered

	accepted func(purchaseID []byte) // called for each 201, by many at once; may be nil
}

// shot is what became of a load.
type shot struct {
	Accepted int           // 201s in time
	All      int           // 201s, those after the end too
	Refused  int           // 409s
	Busy     int           // 423s
	Other    int           // anything else; errors of the connection count as one each
	Elapsed  time.Duration // of the measurement
	CPU      time.Duration // that the generator took
	Spent    spent         // where all CPU went

	latencies []time.Duration // of the 201s, sorted
}

func (s *shot) rate() float64 { return float64(s.Accepted) / s.Elapsed.Seconds() }

func (s *shot) percentile(p float64) time.Duration {
	if len(s.latencies) == 0 {
		return 0
	}
	return s.latencies[min(len(s.latencies)-1, int(p*float64(len(s.latencies))))]
}

func (l load) fire(ctx context.Context) (*shot, error) {
	connections := make([]net.Conn, l.clients)
	defer func() {
		for _, c := range connections {
			if c != nil {
				_ = c.Close()
			}
		}
	}()
	for i := range connections {
		var err error
		if connections[i], err = net.Dial("tcp", l.addrs[i%len(l.addrs)]); err != nil {
			return nil, err
		}
	}
	var (
		mu   sync.Mutex
		sum  shot
		errs []error
		next atomic.Int64
		all  sync.WaitGroup
	)
	cpu, start := cpuTime(), time.Now()
	end := start.Add(l.duration)
	for _, c := range connections {
		all.Go(func() {
			var mine shot
			err := l.client(ctx, c, start, end, &next, &mine)
			mu.Lock()
			defer mu.Unlock()
			sum.Accepted += mine.Accepted
			sum.All += mine.All
			sum.Refused += mine.Refused
			sum.Busy += mine.Busy
			sum.Other += mine.Other
			sum.latencies = append(sum.latencies, mine.latencies...)
			if err != nil {
				sum.Other++
				errs = append(errs, err)
			}
		})
	}
	all.Wait()
	sum.CPU = cpuTime() - cpu
	sum.Elapsed = min(time.Since(start), l.duration)
	slices.Sort(sum.latencies)
	return &sum, errors.Join(errs...)
}

const userDigits = 9

// client asks and waits, one request at a time.
func (l load) client(ctx context.Context, c net.Conn, start, end time.Time, next *atomic.Int64, s *shot) error {
	body := fmt.Sprintf(`{"user_id":"u%0*d","quantity":1}`, userDigits, 0)
	request := fmt.Appendf(nil, "POST /v1/sales/%s/purchases HTTP/1.1\r\nHost: flashsale\r\nContent-Type: application/json\r\nIdempotency-Key: k%0*d\r\nContent-Length: %d\r\n\r\n%s",
		l.sale, userDigits, 0, len(body), body)
	inKey := bytes.Index(request, []byte("Key: k")) + len("Key: k")
	inBody := bytes.Index(request, []byte(`"u0`)) + len(`"u`)
	answers := answers{conn: c, buffer: make([]byte, 0, 8<<10)}
	s.latencies = make([]time.Duration, 0, 4096)
	for ctx.Err() == nil {
		n := next.Add(1) - 1
		if l.requests > 0 && n >= int64(l.requests) {
			return nil
		}
		asked := time.Now()
		if l.rate > 0 {
			due := start.Add(time.Duration(float64(n) / l.rate * float64(time.Second)))
			time.Sleep(due.Sub(asked))
			asked = due // a client that comes late has kept its buyer waiting
		}
		if !asked.Before(end) {
			return nil
		}
		putDigits(request[inKey:], l.first+int(n))
		putDigits(request[inBody:], l.first+int(n))
		if _, err := c.Write(request); err != nil {
			return err
		}
		status, answer, err := answers.next()
		if err != nil {
			return err
		}
		now := time.Now()
		switch status {
		case 201:
			s.All++
			if !now.After(end) || l.requests > 0 {
				s.Accepted++
			}
			s.latencies = append(s.latencies, now.Sub(asked))
			if l.accepted != nil {
				l.accepted(purchaseID(answer))
			}
		case 409:
			s.Refused++
		case 423:
			s.Busy++
		default:
			s.Other++
		}
	}
	return ctx.Err()
}

func putDigits(into []byte, n int) {
	for i := userDigits - 1; i >= 0; i-- {
		into[i] = byte('0' + n%10)
		n /= 10
	}
}

// answers reads HTTP/1.1 answers that have a Content-Length.
type answers struct {
	conn   net.Conn
	buffer []byte
}

var (
	endOfHead     = []byte("\r\n\r\n")
	contentLength = []byte("\r\nContent-Length: ")
)

func (a *answers) next() (status int, body []byte, err error) {
	a.buffer = a.buffer[:0]
	for {
		n, err := a.conn.Read(a.buffer[len(a.buffer):cap(a.buffer)])
		if err != nil {
			return 0, nil, err
		}
		a.buffer = a.buffer[:len(a.buffer)+n]
		head := bytes.Index(a.buffer, endOfHead)
		if head < 0 {
			if len(a.buffer) == cap(a.buffer) {
				return 0, nil, errors.New("the answer's head is too long")
			}
			continue
		}
		i := bytes.Index(a.buffer[:head+2], contentLength)
		if i < 0 {
			return 0, nil, fmt.Errorf("no Content-Length in %q", a.buffer[:head])
		}
		length, _, _ := bytes.Cut(a.buffer[i+len(contentLength):], endOfHead[:2])
		size, err := strconv.Atoi(string(length))
		if err != nil {
			return 0, nil, err
		}
		if body := a.buffer[head+len(endOfHead):]; len(body) >= size {
			status, err := strconv.Atoi(string(a.buffer[9:12]))
			return status, body, err
		}
	}
}

// purchaseID finds the ID in a receipt.
func purchaseID(receipt []byte) []byte {
	_, rest, _ := bytes.Cut(receipt, []byte(`"purchase_id":"`))
	id, _, _ := bytes.Cut(rest, []byte(`"`))
	return id
}

// cpuTime is what this process has used until now.
func cpuTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
