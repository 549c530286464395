//go:build unix

package e2e

import (
	"bytes"
	"net"
	"sync"
	"testing"
	"time"
)

// gate is a TCP proxy: to several addresses in turn, a connection each, or to
// one, whose traffic it can hold up at a moment that a test chooses.
type gate struct {
	listener net.Listener
	targets  []string

	mu    sync.Mutex
	next  int
	trap  *trap
	conns []net.Conn
	up    *valve // to the target
	down  *valve // from it
}

// trap springs at the first request that has a text in it.
type trap struct {
	text   []byte
	spring func(*gate)
	sprung chan struct{}
}

func newGate(t testing.TB, targets ...string) *gate {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{listener: listener, targets: targets, up: openValve(), down: openValve()}
	go g.serve()
	t.Cleanup(g.close)
	return g
}

func (g *gate) addr() string { return g.listener.Addr().String() }

func (g *gate) close() {
	g.listener.Close()
	g.open()
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, conn := range g.conns {
		conn.Close()
	}
}

// holdBefore stops all traffic when a request with text in it comes, and does
// not let that one through either. The result is closed at that moment.
func (g *gate) holdBefore(text string) <-chan struct{} {
	return g.set(text, func(g *gate) { g.up.shut(); g.down.shut() })
}

// muteAfter lets such a request through, and no answer to anything from then on.
func (g *gate) muteAfter(text string) <-chan struct{} {
	return g.set(text, func(g *gate) { g.down.shut() })
}

func (g *gate) set(text string, spring func(*gate)) <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.trap = &trap{[]byte(text), spring, make(chan struct{})}
	return g.trap.sprung
}

// open lets through whatever was held up.
func (g *gate) open() {
	g.up.open()
	g.down.open()
}

func (g *gate) serve() {
	for {
		near, err := g.listener.Accept()
		if err != nil {
			return
		}
		g.mu.Lock()
		target := g.targets[g.next%len(g.targets)]
		g.next++
		g.mu.Unlock()
		go g.connect(near, target)
	}
}

func (g *gate) connect(near net.Conn, target string) {
	far, err := net.DialTimeout("tcp", target, 5*time.Second)
	if err != nil {
		near.Close()
		return
	}
	g.mu.Lock()
	g.conns = append(g.conns, near, far)
	g.mu.Unlock()
	go carry(near, far, g.up, g.look)
	go carry(far, near, g.down, func([]byte) {})
}

// look springs the trap before the chunk is passed on. What a trap is set for
// is short, and is sent in one piece.
func (g *gate) look(chunk []byte) {
	g.mu.Lock()
	trap := g.trap
	if trap == nil || !bytes.Contains(chunk, trap.text) {
		g.mu.Unlock()
		return
	}
	g.trap = nil
	g.mu.Unlock()
	trap.spring(g)
	close(trap.sprung)
}

func carry(from, to net.Conn, valve *valve, look func([]byte)) {
	defer from.Close()
	defer to.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			look(buffer[:n])
			valve.pass()
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// valve lets pass or waits.
type valve struct {
	mu     sync.Mutex
	opened chan struct{} // closed: open
}

func openValve() *valve {
	v := &valve{opened: make(chan struct{})}
	close(v.opened)
	return v
}

func (v *valve) pass() {
	v.mu.Lock()
	opened := v.opened
	v.mu.Unlock()
	<-opened
}

func (v *valve) shut() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.opened = make(chan struct{})
}

func (v *valve) open() {
	v.mu.Lock()
	defer v.mu.Unlock()
	select {
	case <-v.opened:
	default:
		close(v.opened)
	}
}
