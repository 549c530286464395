package zklock

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
)

// session is a connection to ZooKeeper, and for how long the server lets its
// nodes outlive it.
type session struct {
	conn    *zk.Conn
	timeout time.Duration // of each request
	granted atomic.Int64  // session timeout in ms; 0 before the first connection

	closing chan struct{}
	tidying sync.WaitGroup
}

func connect(addrs []string, ttl, timeout time.Duration) (*session, error) {
	s := &session{timeout: timeout, closing: make(chan struct{})}
	conn, _, err := zk.Connect(addrs, ttl, zk.WithDialer(s.dial), zk.WithLogger(silence{}), zk.WithLogInfo(false))
	if err != nil {
		return nil, err
	}
	s.conn = conn
	return s, nil
}

// ttl is what the server has granted. It is known once anything was answered.
func (s *session) ttl() time.Duration { return time.Duration(s.granted.Load()) * time.Millisecond }

// close ends the session, and with it every node that it made.
func (s *session) close() {
	close(s.closing)
	s.conn.Close()
	s.tidying.Wait()
}

// call runs a request that the client would wait for as long as it takes. One
// that is given up goes on: what it did is to be found out.
func call[T any](ctx context.Context, s *session, request func(*zk.Conn) (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := request(s.conn)
		done <- result{value, err}
	}()
	timer := time.NewTimer(s.timeout)
	defer timer.Stop()
	var none T
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		return none, ctx.Err()
	case <-timer.C:
		return none, errNoAnswer
	}
}

var errNoAnswer = errors.New("no answer in time")

// makeNode makes a container node and what is missing above it.
func (s *session) makeNode(ctx context.Context, path string) error {
	for i := 1; i <= len(path); i++ {
		if i < len(path) && path[i] != '/' {
			continue
		}
		_, err := call(ctx, s, func(conn *zk.Conn) (string, error) {
			return conn.CreateContainer(path[:i], nil, zk.FlagContainer, zk.WorldACL(zk.PermAll))
		})
		if err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return err
		}
	}
	return nil
}

// find is the name of the node below parent that holds the token, empty if
// there is none.
func (s *session) find(ctx context.Context, parent, token string) (string, error) {
	names, err := call(ctx, s, func(conn *zk.Conn) ([]string, error) {
		if _, err := conn.Sync(parent); err != nil { // another server may be behind the one that made it
			return nil, err
		}
		names, _, err := conn.Children(parent)
		return names, err
	})
	if errors.Is(err, zk.ErrNoNode) {
		return "", nil
	}
	for _, name := range names {
		if strings.HasPrefix(name, token) {
			return name, nil
		}
	}
	return "", err
}

// tidy deletes the node of a token in the background, for as long as it takes:
// the session that it hangs on may last.
func (s *session) tidy(parent, token string) {
	s.tidying.Go(func() {
		for !s.remove(context.Background(), parent, token) {
			select {
			case <-time.After(200 * time.Millisecond):
			case <-s.closing:
				return
			}
		}
	})
}

// remove deletes the node of a token, and reports whether there is none now.
func (s *session) remove(ctx context.Context, parent, token string) bool {
	name, err := s.find(ctx, parent, token)
	if err != nil || name == "" {
		return err == nil
	}
	_, err = call(ctx, s, func(conn *zk.Conn) (struct{}, error) { return struct{}{}, conn.Delete(parent+"/"+name, -1) })
	return err == nil || errors.Is(err, zk.ErrNoNode)
}

func (s *session) dial(network, addr string, timeout time.Duration) (net.Conn, error) {
	conn, err := net.DialTimeout(network, addr, timeout)
	if err != nil {
		return nil, err
	}
	return &greeted{Conn: conn, session: s}, nil
}

// greeted reads along as the server says for how long it grants the session,
// which the client keeps to itself: length, version and timeout in ms, four
// bytes each, are the first that it sends.
type greeted struct {
	net.Conn
	session *session
	head    [12]byte
	read    int
}

func (g *greeted) Read(p []byte) (int, error) {
	n, err := g.Conn.Read(p)
	if g.read < len(g.head) {
		g.read += copy(g.head[g.read:], p[:n])
		if g.read == len(g.head) {
			g.session.granted.Store(int64(binary.BigEndian.Uint32(g.head[8:])))
		}
	}
	return n, err
}

// silence: every error reaches a caller.
type silence struct{}

func (silence) Printf(string, ...any) {}
