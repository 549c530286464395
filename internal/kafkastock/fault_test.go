package kafkastock_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"flashsale/internal/stock"
)

// The acknowledgement is lost: what was stored is published again, and the
// order of what arrives first is the order of publishing all the same.
func TestRepeatedPublishKeepsTheOrder(t *testing.T) {
	cluster := standIn(t)
	o := installation(t, cluster.ListenAddrs())
	p, s := publisher(t, o), source(t, o)
	cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: o.Topics.Deductions, Err: kerr.NotEnoughReplicasAfterAppend})
	first := batch(1, 0, 10)
	if err := p.Publish(t.Context(), first); !errors.Is(err, stock.ErrUnavailable) {
		t.Fatalf("a lost acknowledgement: %v", err)
	}
	publish(t, p, first)
	publish(t, p, batch(1, 10, 10))
	got := bySale(fetch(t, s, 30))["sale-0"]
	if len(got) != 30 || !slices.Equal(firsts(got), numbers(20)) {
		t.Errorf("arrived as %v", got)
	}
}

// A batch in the middle of a call fails: nothing after it may be stored, or it
// would overtake what is published again.
func TestNothingOvertakesAFailedBatch(t *testing.T) {
	cluster := standIn(t)
	o := installation(t, cluster.ListenAddrs())
	p, s := publisher(t, o), source(t, o)
	var requests []kmsg.Request
	cluster.Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.Produce}, Topic: o.Topics.Deductions, Err: kerr.NotEnoughReplicas,
		When: func(r kmsg.Request) bool { // asked more than once about a request
			if !slices.Contains(requests, r) {
				requests = append(requests, r)
			}
			return len(requests) == 2
		},
	})
	messages := batch(1, 0, 2500) // three batches
	if err := p.Publish(t.Context(), messages); !errors.Is(err, stock.ErrUnavailable) {
		t.Fatalf("a batch that was refused: %v", err)
	}
	if n := len(requests); n != 2 {
		t.Fatalf("%d batches sent, the second failed", n)
	}
	publish(t, p, messages)
	got := bySale(fetch(t, s, 3500))["sale-0"]
	if !slices.Equal(got[:1000], numbers(1000)) || !slices.Equal(got[1000:], numbers(2500)) {
		t.Error("the order of the sale is broken")
	}
}

// One partition's failure must not keep the others' messages back.
func TestOnePartitionFails(t *testing.T) {
	cluster := standIn(t)
	o := installation(t, cluster.ListenAddrs())
	p, s := publisher(t, o), source(t, o)
	cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: o.Topics.Deductions, Partitions: []int32{3}, Err: kerr.NotLeaderForPartition})
	messages := batch(40, 0, 1)
	if err := p.Publish(t.Context(), messages); !errors.Is(err, stock.ErrUnavailable) {
		t.Fatalf("a partition without a leader: %v", err)
	}
	publish(t, p, messages)
	got := bySale(fetch(t, s, 75))
	if len(got) != 40 {
		t.Errorf("%d of 40 sales arrived", len(got))
	}
}

// The coordinator refuses a commit for a while: it is not taken for done.
func TestRefusedCommitIsAnError(t *testing.T) {
	cluster := standIn(t)
	o := installation(t, cluster.ListenAddrs())
	p, s := publisher(t, o), source(t, o)
	publish(t, p, batch(1, 0, 5))
	got := fetch(t, s, 5)
	fault := cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Group: o.Topics.Group, Err: kerr.CoordinatorLoadInProgress, Count: -1})
	if err := s.Commit(t.Context(), got); !errors.Is(err, stock.ErrUnavailable) {
		t.Fatalf("a refused commit: %v", err)
	}
	fault.Remove()
	if err := s.Commit(t.Context(), got); err != nil {
		t.Fatal(err)
	}
	if lag, err := s.Lag(t.Context()); err != nil || lag != 0 {
		t.Errorf("lag %d, %v", lag, err)
	}
}
