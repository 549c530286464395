package zklock

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"flashsale/internal/lock"
)

// Lock is a lock in ZooKeeper: an ephemeral node in a line of them, first come,
// first served.
//
// Protects against:  all that redislock.Watchdog does, and the loss of a server: a majority agreed to each grant.
// Still fails when:  the process is paused past the session's timeout, and writes before it has heard; all leases of the process are lost with its one session. On a line that answers later than Timeout, who lost the lock keeps its node, and everybody out, until the line is well or the session ends.
// Fixed by:          the fence, checked where the guarded value is written.
type Lock struct {
	*session
	Options
	queue lock.Queue
}

// Dial makes a Lock with a session of its own, host:port each, and connects in
// the background. Close it when no one holds a lease any more.
func Dial(addrs []string, options Options) (*Lock, error) {
	options = options.withDefaults()
	if err := options.validate(); err != nil {
		return nil, err
	}
	session, err := connect(addrs, options.TTL, options.Timeout)
	if err != nil {
		return nil, fmt.Errorf("zklock: %w", err)
	}
	return &Lock{session: session, Options: options}, nil
}

const packageName = "zklock"

var _ lock.Locker = (*Lock)(nil)

// Acquire waits for its turn in this process, then in ZooKeeper.
func (l *Lock) Acquire(ctx context.Context, key string) (lock.Lease, error) {
	deadline := time.Now().Add(l.Wait)
	turn, err := l.queue.Enter(ctx, key, l.Wait)
	if err != nil {
		return nil, fmt.Errorf("zklock: acquire %q: %w", key, err)
	}
	parent := l.Root + "/key-" + url.PathEscape(key)
	token := rand.Text() + "-"
	sent := time.Now()
	node, err := l.makeEntry(ctx, parent, token)
	if err != nil {
		l.giveUp(ctx, parent, token, err)
		turn.Leave()
		return nil, fmt.Errorf("zklock: acquire %q: %w", key, cmp.Or(lock.ContextError(ctx), lock.Unavailable(err)))
	}
	lease := newLease(ctx, l, key, parent, node, sent, turn)
	if err := lease.line(ctx, deadline); err != nil {
		err = cmp.Or(lock.ContextError(ctx), err)
		_ = lease.Release(ctx) // gives up the place in the line
		return nil, fmt.Errorf("zklock: acquire %q: %w", key, err)
	}
	return lease, nil
}

// Close ends the session.
func (l *Lock) Close() error {
	l.close()
	return nil
}

// makeEntry makes the node that stands in the line, and returns its name. The
// container above it comes and goes.
func (l *Lock) makeEntry(ctx context.Context, parent, token string) (string, error) {
	const attempts = 3
	for attempt := 1; ; attempt++ {
		// One that is left under way could come after its removal.
		path, err := call(context.WithoutCancel(ctx), l.session, func(conn *zk.Conn) (string, error) {
			return conn.Create(parent+"/"+token, nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
		})
		switch {
		case err == nil:
			return path[strings.LastIndexByte(path, '/')+1:], nil
		case errors.Is(err, zk.ErrNoNode):
			if err := l.makeNode(ctx, parent); err != nil {
				return "", err
			}
		case errors.Is(err, zk.ErrConnectionClosed): // with or without the node
			if name, err := l.find(ctx, parent, token); err != nil || name != "" {
				return name, err
			}
		default:
			return "", err
		}
		if attempt == attempts {
			return "", err
		}
	}
}

// giveUp sees to it that no node stays of an attempt that may have made one. It
// hangs on the session, which may last.
func (l *Lock) giveUp(ctx context.Context, parent, token string, err error) {
	if errors.Is(err, zk.ErrNoServer) { // it was never sent
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.Timeout)
	defer cancel()
	if errors.Is(err, errNoAnswer) || !l.remove(ctx, parent, token) {
		l.tidy(parent, token)
	}
}

// line returns when no node is before this lease's.
func (l *lease) line(ctx context.Context, deadline time.Time) error {
	if err := l.identify(ctx); err != nil {
		return err
	}
	for {
		ahead, err := l.ahead(ctx)
		switch {
		case err != nil:
			return lock.Unavailable(err)
		case l.IsLost():
			return lock.Unavailable(errEnded)
		case ahead == "":
			return nil
		case !time.Now().Before(deadline):
			return lock.ErrNotAcquired
		}
		if err := l.awaitEnd(ctx, ahead, deadline); err != nil {
			return err
		}
	}
}

var errEnded = errors.New("the session ended while it waited")

// identify finds out in which transaction the node was made.
func (l *lease) identify(ctx context.Context) error {
	stat, err := l.look(ctx)
	if err != nil {
		return lock.Unavailable(err)
	}
	if stat == nil {
		return lock.Unavailable(errEnded)
	}
	l.fence = stat.Czxid
	return nil
}

// ahead is the name of the node right before this lease's, empty at the front.
func (l *lease) ahead(ctx context.Context) (string, error) {
	names, err := call(ctx, l.session, func(conn *zk.Conn) ([]string, error) {
		names, _, err := conn.Children(l.parent)
		return names, err
	})
	if err != nil {
		return "", err
	}
	ahead, there := "", false
	for _, name := range names {
		switch {
		case name == l.node:
			there = true
		case before(name, l.node) && (ahead == "" || before(ahead, name)):
			ahead = name
		}
	}
	if !there {
		return "", errEnded
	}
	return ahead, nil
}

// before compares the numbers that ZooKeeper appended. They count to 2^31 and go
// on below zero.
func before(a, b string) bool { return int32(number(a)-number(b)) < 0 }

func number(name string) uint32 {
	_, digits, _ := strings.Cut(name, "-")
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil {
		return 0 // nobody's but a stranger's node
	}
	return uint32(n)
}

// awaitEnd returns when the node may be gone, or waiting is over for another
// reason.
func (l *lease) awaitEnd(ctx context.Context, node string, deadline time.Time) error {
	events, err := call(ctx, l.session, func(conn *zk.Conn) (<-chan zk.Event, error) {
		there, _, events, err := conn.ExistsW(l.parent + "/" + node)
		if !there {
			events = nil
		}
		return events, err
	})
	if err != nil {
		return lock.Unavailable(err)
	}
	if events == nil {
		return nil
	}
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case <-events: // gone, or the watch is: both are looked into
	case <-l.Lost():
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err()
}
