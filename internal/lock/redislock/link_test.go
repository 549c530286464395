package redislock

import (
	"net"
	"sync"
	"testing"
	"time"
)

// link is a line to a server that a test can disturb.
type link struct {
	listener net.Listener
	target   string

	mu    sync.Mutex
	how   disturbance
	conns map[net.Conn]struct{}
	all   sync.WaitGroup
}

// disturbance is what happens on a line; the zero value is nothing.
type disturbance struct {
	reset        bool          // connections break as soon as anything is sent
	dropRequests bool          // what the client sends is lost: a partition
	dropReplies  bool          // what the server answers is lost
	delay        time.Duration // an answer is late by this
}

func newLink(t testing.TB, target string) *link {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &link{listener: listener, target: target, conns: make(map[net.Conn]struct{})}
	l.all.Go(l.accept)
	t.Cleanup(func() {
		listener.Close()
		l.cut()
		l.all.Wait()
	})
	return l
}

func (l *link) Addr() string { return l.listener.Addr().String() }

// disturb changes what happens from now on. Connections that have lost something
// are of no use afterwards, so all are cut when the line is well again.
func (l *link) disturb(how disturbance) {
	l.mu.Lock()
	l.how = how
	l.mu.Unlock()
	if how == (disturbance{}) {
		l.cut()
	}
}

func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for conn := range l.conns {
		conn.Close()
	}
}

func (l *link) accept() {
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

func (l *link) pump(to, from net.Conn, requests bool) {
	defer func() {
		to.Close()
		from.Close()
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.conns, to)
		delete(l.conns, from)
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
		case how.reset:
			return
		case requests && how.dropRequests, !requests && how.dropReplies:
			continue
		case !requests:
			time.Sleep(how.delay)
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}
