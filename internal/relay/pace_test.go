package relay_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"flashsale/internal/relay"
	"flashsale/internal/stock"
)

const pace = 25 * time.Millisecond

// slowly publishes, and notes when it began and how much there was.
type slowly struct {
	stock.Publisher
	takes     time.Duration
	began     time.Time
	published []string
}

func (s *slowly) Publish(ctx context.Context, messages []stock.Message) error {
	s.published = append(s.published, fmt.Sprintf("%d after %v", len(messages), time.Since(s.began)))
	time.Sleep(s.takes)
	return s.Publisher.Publish(ctx, messages)
}

// paced runs one relay of one shard, whose batches are of four, while entries of
// one event come at these instants; want is what is published when.
func paced(t *testing.T, name string, takes time.Duration, come []time.Duration, want ...string) {
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			s := &slowly{takes: takes, began: time.Now()}
			p := w.start(t, "only", func(o *relay.Options) {
				o.Shards, o.Pace = 1, pace
				s.Publisher, o.Publisher = o.Publisher, s
			})
			for i, at := range come {
				time.Sleep(at - time.Since(s.began))
				w.add(0, "sale-0", i, 1)
			}
			w.awaitDrained(t)
			p.stop()
			w.check(t, map[string]int{"sale-0": len(come)})
			if fmt.Sprint(s.published) != fmt.Sprint(want) {
				t.Errorf("published %v, want %v", s.published, want)
			}
		})
	})
}

func TestPace(t *testing.T) {
	const ms = time.Millisecond
	paced(t, "who comes first is not kept waiting, who comes within it goes together", 0,
		[]time.Duration{0, 10 * ms, 20 * ms, 24 * ms, 30 * ms}, "1 after 0s", "3 after 25ms", "1 after 50ms")
	paced(t, "after a rest nobody waits", 0,
		[]time.Duration{0, 100 * ms}, "1 after 0s", "1 after 100ms")
	paced(t, "nor after a read that found nothing", 0, // it ends after Block, 250 ms
		[]time.Duration{260 * ms}, "1 after 260ms")
	paced(t, "a whole batch is followed by the next at once", 0,
		[]time.Duration{0, 10 * ms, 10 * ms, 10 * ms, 10 * ms, 10 * ms}, "1 after 0s", "4 after 25ms", "1 after 25ms")
	paced(t, "it counts from the read: publishing is no pause", 40*ms,
		[]time.Duration{0, 10 * ms, 50 * ms}, "1 after 0s", "1 after 40ms", "1 after 80ms")
	paced(t, "a publish that is shorter takes from it", 10*ms,
		[]time.Duration{0, 5 * ms}, "1 after 0s", "1 after 25ms")
}

func TestPaceDoesNotDelayTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		p := w.start(t, "only", func(o *relay.Options) { o.Pace = time.Hour })
		w.add(0, "sale-0", 0, 1)
		w.awaitDrained(t)
		synctest.Wait() // now it pauses
		began := time.Now()
		p.stop()
		if took := time.Since(began); took > 250*time.Millisecond { // Block, of the shard that has nothing
			t.Errorf("took %v", took)
		}
	})
}
