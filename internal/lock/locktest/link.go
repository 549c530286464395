package locktest

import (
	"net"
	"sync"
	"testing"
	"time"
)

// Link is a line to a server that a test can disturb.
type Link struct {
	listener net.Listener
	target   string

	mu    sync.Mutex
	how   Disturbance
	conns map[net.Conn]struct{}
	all   sync.WaitGroup
}

// Disturbance is what happens on a line; the zero value is nothing.
type Disturbance struct {
	Reset        bool          // connections break as soon as anything is sent
	DropRequests bool          // what the client sends is lost, and that it closes: a partition
	DropReplies  bool          // what the server answers is lost
	Delay        time.Duration // an answer is late by this
}

// NewLink is a line to target, host:port, that lasts as long as the test.
func NewLink(t testing.TB, target string) *Link {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &Link{listener: listener, target: target, conns: make(map[net.Conn]struct{})}
	l.all.Go(l.accept)
	t.Cleanup(func() {
		listener.Close()
		l.cut()
		l.all.Wait()
	})
	return l
}

// Addr is where to connect to instead.
func (l *Link) Addr() string { return l.listener.Addr().String() }

// Disturb changes what happens from now on. Connections that have lost something
// are of no use afterwards, so all are cut when the line is well again.
func (l *Link) Disturb(how Disturbance) {
	l.mu.Lock()
	l.how = how
	l.mu.Unlock()
	if how == (Disturbance{}) {
		l.cut()
	}
}

func (l *Link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for conn := range l.conns {
		conn.Close()
	}
}

func (l *Link) accept() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", l.target)
		if err != nil {
			client.Close()
			continue
		}
		l.mu.Lock()
		l.conns[client], l.conns[server] = struct{}{}, struct{}{}
		l.mu.Unlock()
		l.all.Go(func() { l.pump(server, client, true) })
		l.all.Go(func() { l.pump(client, server, false) })
	}
}

func (l *Link) pump(to, from net.Conn, requests bool) {
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		from.Close()
		delete(l.conns, from)
		if !requests || !l.how.DropRequests { // else the server hears of nothing until the line is cut
			to.Close()
			delete(l.conns, to)
		}
	}()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		l.mu.Lock()
		how := l.how
		l.mu.Unlock()
		switch {
		case how.Reset:
			return
		case requests && how.DropRequests, !requests && how.DropReplies:
			continue
		case !requests:
			time.Sleep(how.Delay)
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}
