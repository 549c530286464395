package redislock

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// linger is how long a subscription that nobody needs is kept: a key that is
// contended now is likely to be so again in a moment.
const linger = 200 * time.Millisecond

// listener wakes who waits for a lock when its release is published. All share
// one connection, which exists while somebody waits. It may be down: then
// nobody is woken, and everybody is once when it is back, since releases may
// have gone by unheard. Waiters poll beside it.
type listener struct {
	client redis.UniversalClient

	mu       sync.Mutex
	channels map[string]*channel
	running  bool
	closed   bool
	runs     sync.WaitGroup
	changed  chan struct{} // to the running goroutine: channels have come, or all is over
}

type channel struct {
	waiters   map[chan struct{}]string // to the token of each
	asked     bool                     // SUBSCRIBE was sent
	heard     bool                     // and confirmed
	idleSince time.Time                // when the last waiter left
}

func newListener(client redis.UniversalClient) *listener {
	return &listener{client: client, channels: make(map[string]*channel), changed: make(chan struct{}, 1)}
}

// listen returns a channel that receives when the caller had better try again:
// once as soon as it is sure to hear of every later release, then after each
// that is meant for everybody (its message is empty) or for token.
// The caller calls leave when it has stopped waiting.
func (l *listener) listen(name, token string) (wake <-chan struct{}, leave func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, func() {}
	}
	c := l.channels[name]
	if c == nil {
		c = &channel{waiters: make(map[chan struct{}]string)}
		l.channels[name] = c
	}
	waiter := make(chan struct{}, 1)
	c.waiters[waiter] = token
	if c.heard {
		waiter <- struct{}{}
	}
	if !l.running {
		l.running = true
		l.runs.Go(l.run)
	}
	notify(l.changed)
	return waiter, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(c.waiters, waiter)
		c.idleSince = time.Now()
	}
}

// own is how many of those who hear of a release are this listener: 1 or 0.
func (l *listener) own(name string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.channels[name]; c != nil && c.heard {
		return 1
	}
	return 0
}

// close ends the connection. Who still waits goes on polling.
func (l *listener) close() {
	l.stop()
	l.runs.Wait()
}

func (l *listener) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	notify(l.changed)
}

// run owns the connection. It alone subscribes and unsubscribes, so that the
// two are sent in the order in which they were decided.
func (l *listener) run() {
	ctx := context.Background()
	pubsub := l.client.Subscribe(ctx)
	events := pubsub.ChannelWithSubscriptions()
	tick := time.NewTicker(linger)
	defer tick.Stop()

	for {
		wanted, unwanted, more := l.plan(time.Now())
		if !more {
			break
		}
		// An error is made up for when the connection is back: it subscribes
		// to all that was asked for.
		if len(wanted) > 0 {
			_ = pubsub.Subscribe(ctx, wanted...)
		}
		if len(unwanted) > 0 {
			_ = pubsub.Unsubscribe(ctx, unwanted...)
		}
		l.dispatch(events, tick.C)
	}
	_ = pubsub.Close()
	for range events { // ends when the connection's own goroutine has
	}
}

// plan decides what to subscribe to, what not any longer, and whether to go on.
func (l *listener) plan(now time.Time) (wanted, unwanted []string, more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, c := range l.channels {
		switch {
		case len(c.waiters) == 0 && now.Sub(c.idleSince) >= linger:
			delete(l.channels, name)
			unwanted = append(unwanted, name)
		case !c.asked:
			c.asked = true
			wanted = append(wanted, name)
		}
	}
	l.running = len(l.channels) > 0 && !l.closed
	return wanted, unwanted, l.running
}

// dispatch wakes waiters until there may be something to plan.
func (l *listener) dispatch(events <-chan any, tick <-chan time.Time) {
	for {
		select {
		case <-l.changed:
			return
		case <-tick:
			return
		case event, open := <-events:
			if !open { // the client was closed: nothing will be heard any more
				l.stop()
				return
			}
			switch event := event.(type) {
			case *redis.Subscription:
				if event.Kind == "subscribe" {
					l.wake(event.Channel, "", true)
				}
			case *redis.Message:
				l.wake(event.Channel, event.Payload, false)
			}
		}
	}
}

// wake wakes who waits under a token, or everybody.
func (l *listener) wake(name, token string, subscribed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.channels[name]
	if c == nil {
		return
	}
	c.heard = c.heard || subscribed
	for waiter, its := range c.waiters {
		if token == "" || token == its {
			notify(waiter)
		}
	}
}

func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
