package kafkastock_test

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kfake"

	"flashsale/internal/kafkastock"
	"flashsale/internal/servers"
	"flashsale/internal/servers/servertest"
	"flashsale/internal/stock"
)

// patience bounds every wait of these tests; none of them sleeps it out.
const patience = 30 * time.Second

// installation is a fresh set of topics on the given brokers.
func installation(t testing.TB, brokers []string) kafkastock.Options {
	t.Helper()
	o := options(t, brokers)
	if err := kafkastock.EnsureTopics(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	return o
}

func options(t testing.TB, brokers []string) kafkastock.Options {
	return kafkastock.Options{Brokers: brokers, Topics: kafkastock.Names(servertest.Prefix(t))}
}

func standIn(t testing.TB, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	cluster, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	return cluster
}

func publisher(t testing.TB, o kafkastock.Options) *kafkastock.Publisher {
	t.Helper()
	p, err := kafkastock.NewPublisher(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func source(t testing.TB, o kafkastock.Options) *kafkastock.Source {
	t.Helper()
	s, err := kafkastock.NewSource(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// batch is n messages of each sale, numbered from start.
func batch(sales, start, n int) []stock.Message {
	messages := make([]stock.Message, 0, sales*n)
	for i := range n {
		for sale := range sales {
			messages = append(messages, stock.Message{Key: "sale-" + strconv.Itoa(sale), Value: strconv.AppendInt(nil, int64(start+i), 10)})
		}
	}
	return messages
}

func publish(t testing.TB, p *kafkastock.Publisher, messages []stock.Message) {
	t.Helper()
	if err := p.Publish(t.Context(), messages); err != nil {
		t.Fatal(err)
	}
}

// fetch gathers n messages, committing none.
func fetch(t testing.TB, s *kafkastock.Source, n int) []stock.Message {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var all []stock.Message
	for len(all) < n {
		got, err := s.Fetch(ctx, n-len(all), 5*time.Millisecond)
		if ctx.Err() != nil {
			t.Fatalf("%d of %d messages in %v: %v", len(all), n, patience, err)
		}
		all = append(all, got...)
	}
	return all
}

// bySale gives each sale's values in the order of their arrival.
func bySale(messages []stock.Message) map[string][]string {
	values := map[string][]string{}
	for _, m := range messages {
		values[m.Key] = append(values[m.Key], string(m.Value))
	}
	return values
}

// firsts drops what was seen before: what is left is the order that counts.
func firsts(values []string) []string {
	var kept []string
	for _, v := range values {
		if !slices.Contains(kept, v) {
			kept = append(kept, v)
		}
	}
	return kept
}

func numbers(n int) []string {
	values := make([]string, n)
	for i := range values {
		values[i] = strconv.Itoa(i)
	}
	return values
}

// eventually repeats try until it answers nil.
func eventually(t testing.TB, try func() error) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-deadline:
			t.Fatal(err)
		case <-tick.C:
		}
	}
}

func TestNames(t *testing.T) {
	plain := kafkastock.Topics{Deductions: "stock.deductions", Dead: "stock.deductions.dead", Group: "flashsale-syncer"}
	for prefix, want := range map[string]kafkastock.Topics{
		"": plain, "fs": plain,
		"fs-demo-1": {Deductions: "stock.deductions.fs-demo-1", Dead: "stock.deductions.fs-demo-1.dead", Group: "flashsale-syncer.fs-demo-1"},
	} {
		if got := kafkastock.Names(prefix); got != want {
			t.Errorf("Names(%q) = %+v, want %+v", prefix, got, want)
		}
	}
}

func TestOptionsSayWhatIsWrong(t *testing.T) {
	for name, o := range map[string]kafkastock.Options{
		"no broker":           {},
		"host:port":           {Brokers: []string{"kafka"}},
		"must not be negativ": {Brokers: []string{"kafka:9092"}, Partitions: -1},
	} {
		if _, err := kafkastock.NewPublisher(o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%+v: %v, want %q", o, err, name)
		}
	}
}

func TestTopicsAreCreatedOnceAndRemoved(t *testing.T) {
	eachBroker(t, func(t *testing.T, brokers []string) {
		o := options(t, brokers)
		if err := kafkastock.Ping(t.Context(), o); !errors.Is(err, stock.ErrUnavailable) || !errors.Is(err, kafkastock.ErrNoTopic) {
			t.Fatalf("ping without topics: %v", err)
		}
		for range 2 {
			if err := kafkastock.EnsureTopics(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
		if err := kafkastock.Ping(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		client := kafka.Client{Addr: kafka.TCP(brokers...), Transport: &kafka.Transport{}}
		metadata, err := client.Metadata(t.Context(), &kafka.MetadataRequest{Topics: []string{o.Topics.Deductions, o.Topics.Dead}})
		if err != nil {
			t.Fatal(err)
		}
		for _, topic := range metadata.Topics {
			if len(topic.Partitions) != 8 {
				t.Errorf("%s: %d partitions", topic.Name, len(topic.Partitions))
			}
		}
		for range 2 {
			if err := kafkastock.DeleteTopics(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
		eventually(t, func() error {
			if err := kafkastock.Ping(t.Context(), o); err == nil {
				return errors.New("the topics are still there")
			}
			return nil
		})
	})
}

func TestOrderOfASaleIsKeptAndCommittedMessagesDoNotComeAgain(t *testing.T) {
	eachBroker(t, func(t *testing.T, brokers []string) {
		o := installation(t, brokers)
		p := publisher(t, o)
		publish(t, p, batch(20, 0, 60))
		publish(t, p, batch(20, 60, 60))

		first, err := kafkastock.NewSource(o)
		if err != nil {
			t.Fatal(err)
		}
		half := fetch(t, first, 1200)
		if err := first.Commit(t.Context(), half); err != nil {
			t.Fatal(err)
		}
		if lag, err := first.Lag(t.Context()); err != nil || lag != 1200 {
			t.Fatalf("lag %d, %v; want 1200", lag, err)
		}
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		second := source(t, o)
		rest := fetch(t, second, 1200)
		for sale, values := range bySale(slices.Concat(half, rest)) {
			if !slices.Equal(values, numbers(120)) {
				t.Errorf("%s arrived as %v", sale, values)
			}
		}
		if err := second.Commit(t.Context(), rest); err != nil {
			t.Fatal(err)
		}
		if lag, err := second.Lag(t.Context()); err != nil || lag != 0 {
			t.Fatalf("lag %d, %v; want 0", lag, err)
		}
	})
}

// Together the messages are more than a broker takes in one request.
func TestLargeMessagesAreSentApart(t *testing.T) {
	eachBroker(t, func(t *testing.T, brokers []string) {
		o := installation(t, brokers)
		random := rand.NewChaCha8([32]byte{})
		messages := make([]stock.Message, 4)
		for i := range messages {
			value := make([]byte, 400<<10)
			random.Read(value)
			messages[i] = stock.Message{Key: "sale-1", Value: value}
		}
		publish(t, publisher(t, o), messages)
		for i, got := range fetch(t, source(t, o), len(messages)) {
			if !bytes.Equal(got.Value, messages[i].Value) {
				t.Errorf("message %d is another one", i)
			}
		}
	})
}

func TestUncommittedMessagesComeAgain(t *testing.T) {
	eachBroker(t, func(t *testing.T, brokers []string) {
		o := installation(t, brokers)
		publish(t, publisher(t, o), batch(3, 0, 10))
		first, err := kafkastock.NewSource(o)
		if err != nil {
			t.Fatal(err)
		}
		want := bySale(fetch(t, first, 30))
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		if got := bySale(fetch(t, source(t, o), 30)); !maps.EqualFunc(got, want, slices.Equal) {
			t.Errorf("came again as %v, want %v", got, want)
		}
	})
}

func TestClosedMemberHandsItsPartitionsOver(t *testing.T) {
	eachBroker(t, func(t *testing.T, brokers []string) {
		o := installation(t, brokers)
		p := publisher(t, o)
		publish(t, p, batch(20, 0, 1))
		leaving, staying := source(t, o), source(t, o)
		got := fetch(t, leaving, 20)
		if err := leaving.Commit(t.Context(), got); err != nil {
			t.Fatal(err)
		}
		done := make(chan []stock.Message, 1)
		go func() { done <- fetch(t, staying, 20) }()
		if err := leaving.Close(); err != nil {
			t.Fatal(err)
		}
		publish(t, p, batch(20, 1, 1))
		for sale, values := range bySale(<-done) {
			if !slices.Equal(values, []string{"1"}) {
				t.Errorf("%s: %v, want only what was not committed", sale, values)
			}
		}
	})
}

func TestBuriedMessageKeepsItsBytes(t *testing.T) {
	eachBroker(t, func(t *testing.T, brokers []string) {
		o := installation(t, brokers)
		o.Topics.Dead = onePartition(t, o)
		huge := slices.Repeat([]byte{0xff}, 1<<20) // at a broker's limit, and not compressible by being text
		for i, value := range [][]byte{[]byte("{\x00\xff"), nil, huge} {
			m := stock.Message{Key: "sale-1", Value: value, Partition: 3, Offset: int64(40 + i)}
			if err := source(t, o).Bury(t.Context(), m, "malformed"); err != nil {
				t.Fatal(err)
			}
		}
		reader := kafka.NewReader(kafka.ReaderConfig{Brokers: brokers, Topic: o.Topics.Dead, MaxWait: 500 * time.Millisecond, MaxBytes: 8 << 20})
		defer reader.Close()
		for i, want := range []string{"{\x00\xff", "", string(huge)} {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			got, err := reader.ReadMessage(ctx)
			cancel()
			if err != nil {
				t.Fatal(err)
			}
			headers := map[string]string{}
			for _, h := range got.Headers {
				headers[h.Key] = string(h.Value)
			}
			wantHeaders := map[string]string{"reason": "malformed", "topic": o.Topics.Deductions, "partition": "3", "offset": strconv.Itoa(40 + i)}
			if string(got.Value) != want || string(got.Key) != "sale-1" || !maps.Equal(headers, wantHeaders) {
				t.Errorf("dead letter %d: key %q, %d bytes, %v", i, got.Key, len(got.Value), headers)
			}
		}
	})
}

// onePartition makes a dead letter topic that can be read in one go.
func onePartition(t *testing.T, o kafkastock.Options) string {
	t.Helper()
	o.Topics.Dead += ".one"
	o.Partitions = 1
	if err := kafkastock.EnsureTopics(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	return o.Topics.Dead
}

func TestBrokersAway(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	o := kafkastock.Options{Brokers: []string{address}, Timeout: 2 * time.Second}
	p, s := publisher(t, o), source(t, o)
	message := stock.Message{Key: "sale-1", Value: []byte("1")}
	calls := map[string]func(context.Context) error{
		"publish": func(ctx context.Context) error { return p.Publish(ctx, []stock.Message{message}) },
		"fetch":   func(ctx context.Context) error { _, err := s.Fetch(ctx, 1, time.Millisecond); return err },
		"commit":  func(ctx context.Context) error { return s.Commit(ctx, []stock.Message{message}) },
		"bury":    func(ctx context.Context) error { return s.Bury(ctx, message, "malformed") },
		"lag":     func(ctx context.Context) error { _, err := s.Lag(ctx); return err },
		"ping":    func(ctx context.Context) error { return kafkastock.Ping(ctx, o) },
		"create":  func(ctx context.Context) error { return kafkastock.EnsureTopics(ctx, o) },
		"delete":  func(ctx context.Context) error { return kafkastock.DeleteTopics(ctx, o) },
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			begin := time.Now()
			if err := call(t.Context()); !errors.Is(err, stock.ErrUnavailable) {
				t.Errorf("%v, want ErrUnavailable", err)
			}
			if took := time.Since(begin); took > 2*o.Timeout {
				t.Errorf("took %v", took)
			}
			cancelled, cancel := context.WithCancel(t.Context())
			cancel()
			if err := call(cancelled); !errors.Is(err, context.Canceled) || errors.Is(err, stock.ErrUnavailable) {
				t.Errorf("cancelled: %v", err)
			}
		})
	}
}

func TestMissingTopicIsSaidAndHeals(t *testing.T) {
	eachBroker(t, func(t *testing.T, brokers []string) {
		o := options(t, brokers)
		p, s := publisher(t, o), source(t, o)
		_, fetchErr := s.Fetch(t.Context(), 1, time.Millisecond)
		for _, err := range []error{p.Publish(t.Context(), batch(1, 0, 1)), fetchErr} {
			if !errors.Is(err, stock.ErrUnavailable) || !errors.Is(err, kafkastock.ErrNoTopic) || !strings.Contains(err.Error(), "flashsale migrate") {
				t.Errorf("%v", err)
			}
		}
		if err := kafkastock.EnsureTopics(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		eventually(t, func() error { return p.Publish(t.Context(), batch(1, 0, 1)) })
		if got := fetch(t, s, 1); string(got[0].Value) != "0" {
			t.Errorf("got %q", got[0].Value)
		}
	})
}

func TestClosedSource(t *testing.T) {
	o := installation(t, standIn(t).ListenAddrs())
	s := source(t, o)
	publish(t, publisher(t, o), batch(1, 0, 1))
	got := fetch(t, s, 1)
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Fetch(t.Context(), 1, 0); !errors.Is(err, kafkastock.ErrClosed) {
		t.Errorf("fetch: %v", err)
	}
	if err := s.Commit(t.Context(), got); !errors.Is(err, kafkastock.ErrClosed) {
		t.Errorf("commit: %v", err)
	}
}

func TestFetchReturnsWhatItHasWhenTheCallerGivesUp(t *testing.T) {
	o := installation(t, standIn(t).ListenAddrs())
	s := source(t, o)
	publish(t, publisher(t, o), batch(1, 0, 3))
	fetch(t, s, 1) // the group is joined and the rest is on its way
	ctx, cancel := context.WithCancel(t.Context())
	stop := time.AfterFunc(time.Second, cancel)
	defer stop.Stop()
	got, err := s.Fetch(ctx, 100, patience)
	if err != nil || len(got) != 2 {
		t.Errorf("%d messages, %v: what was received would never come again", len(got), err)
	}
	if _, err := s.Fetch(ctx, 1, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// The broker is killed while messages are on their way, and comes back.
func TestSourceAndPublisherOutliveTheBroker(t *testing.T) {
	for name, start := range map[string]func(*testing.T) servers.Server{
		"real":     func(t *testing.T) servers.Server { return servertest.KafkaServer(t) },
		"stand-in": embedded,
	} {
		t.Run(name, func(t *testing.T) {
			broker := start(t)
			o := installation(t, []string{broker.Addr()})
			o.Timeout, o.SessionTimeout = 5*time.Second, time.Second
			p, s := publisher(t, o), source(t, o)
			publish(t, p, batch(5, 0, 10))
			if err := s.Commit(t.Context(), fetch(t, s, 50)); err != nil {
				t.Fatal(err)
			}
			publish(t, p, batch(5, 10, 10)) // acknowledged, so it outlives the kill
			broker.Kill()
			if err := p.Publish(t.Context(), batch(5, 20, 10)); !errors.Is(err, stock.ErrUnavailable) {
				t.Fatalf("publish without a broker: %v", err)
			}
			if err := broker.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			eventually(t, func() error { return p.Publish(t.Context(), batch(5, 20, 10)) })

			// What was fetched before the kill comes again or doesn't; what
			// matters is that all arrives, each sale's first times in order.
			var got []stock.Message
			complete := func() bool {
				for _, values := range bySale(got) {
					if len(firsts(values)) < 20 {
						return false
					}
				}
				return len(got) >= 100
			}
			for !complete() {
				more := fetch(t, s, 1)
				got = append(got, more...)
			}
			for sale, values := range bySale(got) {
				if want := numbers(30)[10:]; !slices.Equal(firsts(values), want) {
					t.Errorf("%s: %v, want %v", sale, values, want)
				}
			}
			eventually(t, func() error { return s.Commit(t.Context(), got) })
			eventually(t, func() error {
				lag, err := s.Lag(t.Context())
				if err != nil || lag == 0 {
					return err
				}
				// What was published twice is still to come.
				return errors.Join(errors.New("still behind"), s.Commit(t.Context(), fetch(t, s, 1)))
			})
		})
	}
}

func embedded(t *testing.T) servers.Server {
	server := servers.EmbeddedKafka(t.TempDir())
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Kill)
	return server
}

// eachBroker runs a test on Kafka, and on the stand-in that the demo uses.
func eachBroker(t *testing.T, test func(t *testing.T, brokers []string)) {
	t.Run("real", func(t *testing.T) { test(t, servertest.Kafka(t)) })
	t.Run("stand-in", func(t *testing.T) { test(t, standIn(t).ListenAddrs()) })
}

// One goroutine fetches the next batch while another commits the last one. Who
// comes after a crash gets what was fetched ahead, and nothing else.
func TestFetchedAheadIsNotCommitted(t *testing.T) {
	eachBroker(t, func(t *testing.T, brokers []string) {
		o := installation(t, brokers)
		publish(t, publisher(t, o), batch(1, 0, 300))
		first := source(t, o)
		inHand := fetch(t, first, 100)
		committed := make(chan error, 1)
		go func() { committed <- first.Commit(t.Context(), inHand) }()
		fetch(t, first, 100)
		if err := <-committed; err != nil {
			t.Fatal(err)
		}
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		got := bySale(fetch(t, source(t, o), 200))["sale-0"]
		if want := numbers(300)[100:]; !slices.Equal(got, want) {
			t.Errorf("the next one gets %v, want %v", got, want)
		}
	})
}

// A batch is bounded in bytes too, not in messages alone.
func TestBatchOfLargeMessagesIsBounded(t *testing.T) {
	eachBroker(t, func(t *testing.T, brokers []string) {
		o := installation(t, brokers)
		const n, size = 24, 700_000
		messages := batch(1, 0, n)
		for i := range messages {
			messages[i].Value = bytes.Repeat([]byte{byte('a' + i)}, size)
		}
		publish(t, publisher(t, o), messages)
		s := source(t, o)
		var got []stock.Message
		for len(got) < n {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			part, err := s.Fetch(ctx, 1000, 50*time.Millisecond)
			cancel()
			if err != nil {
				t.Fatal(err)
			}
			if len(part)*size > 9<<20 {
				t.Errorf("%d messages of %d bytes in a batch", len(part), size)
			}
			got = append(got, part...)
		}
		for i, m := range got {
			if m.Value[0] != byte('a'+i) {
				t.Fatalf("message %d has value %c", i, m.Value[0])
			}
		}
	})
}
