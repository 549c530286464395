package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/segmentio/kafka-go"

	"flashsale/internal/servers/servertest"
	"flashsale/internal/sqlstock"
	"flashsale/internal/stock"
)

// given are servers that the demo is pointed at, as far as this machine has
// real ones. It takes a Redis that it is given for a real one.
type given struct {
	redis *redis.Client
	kafka []string
	sql   *sqlstock.DB // nil: there is only a stand-in, which nobody can be given
	flags []string
}

func giveServers(t *testing.T) *given {
	addr, brokers, dsn := servertest.RealRedis(t), servertest.Kafka(t), servertest.SQL(t)
	g := &given{
		redis: redis.NewClient(&redis.Options{Addr: addr}),
		kafka: brokers,
		flags: []string{"--redis", addr, "--kafka", strings.Join(brokers, ",")},
	}
	t.Cleanup(func() { g.redis.Close() })
	if sqlstock.IsStandIn(dsn) {
		return g
	}
	g.flags = append(g.flags, "--mysql", dsn)
	var err error
	if g.sql, err = sqlstock.Open(dsn, sqlstock.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.sql.Close() })

	// Somebody's sale of the same name as one of the catalogue's.
	if err := g.sql.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	sale := stock.Sale{ID: "mug-unsafe", ItemID: "mug", Title: "Not the demo's", Stock: 1, PerUserLimit: 1, Variant: "atomic", Fencing: true}
	if err := g.sql.InsertSale(t.Context(), sale); err != nil {
		t.Fatal(err)
	}
	return g
}

// holds lists what is there: every row of the database, and those keys, topics
// and groups that are a demo's.
func (g *given) holds(t *testing.T) (things []string) {
	t.Helper()
	ctx := context.Background()
	for scan := g.redis.Scan(ctx, 0, "*fs-demo-*", 1000).Iterator(); scan.Next(ctx); {
		things = append(things, "key "+scan.Val())
	}
	transport := new(kafka.Transport) // a new one: it remembers what there was
	defer transport.CloseIdleConnections()
	client := &kafka.Client{Addr: kafka.TCP(g.kafka...), Transport: transport}
	metadata, err := client.Metadata(ctx, &kafka.MetadataRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, topic := range metadata.Topics {
		if strings.Contains(topic.Name, "fs-demo-") {
			things = append(things, "topic "+topic.Name)
		}
	}
	groups, err := client.ListGroups(ctx, &kafka.ListGroupsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range groups.Groups {
		if strings.Contains(group.GroupID, "fs-demo-") {
			things = append(things, "group "+group.GroupID)
		}
	}
	if g.sql != nil {
		sales, err := g.sql.Sales(ctx, "", 1000)
		if err != nil {
			t.Fatal(err)
		}
		for _, sale := range sales {
			things = append(things, "sale "+sale.ID)
			if err := g.sql.EachPurchase(ctx, sale.ID, func(p stock.Purchase) error {
				things = append(things, "purchase "+p.PurchaseID)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}
	}
	slices.Sort(things)
	return things
}

func TestDemoLeavesNothingOnGivenServers(t *testing.T) {
	g := giveServers(t)
	before := g.holds(t)
	check := func(t *testing.T) {
		t.Helper()
		deadline := time.Now().Add(5 * time.Second) // the deletion of a topic gets around
		after := g.holds(t)
		for !slices.Equal(after, before) && time.Now().Before(deadline) {
			after = g.holds(t)
		}
		if !slices.Equal(after, before) {
			t.Errorf("before: %q\nafter: %q", before, after)
		}
	}

	t.Run("after the table", func(t *testing.T) {
		s := call(t.Context(), small(append([]string{"--once", "--variants", "all"}, g.flags...)...)...)
		if s.err != nil {
			t.Errorf("%v\n%s%s", s.err, s.stdout.String(), s.stderr.String())
		}
		if !strings.Contains(s.stdout.String(), "everything is named fs-demo-") {
			t.Errorf("no word about the names:\n%s", s.stdout.String())
		}
		check(t)
	})

	t.Run("each alone", func(t *testing.T) {
		for i := 0; i < len(g.flags); i += 2 {
			s := call(t.Context(), small("--json", "--variants", "atomic", g.flags[i], g.flags[i+1])...)
			if s.err != nil {
				t.Errorf("%s: %v\n%s", g.flags[i], s.err, s.stderr.String())
			}
			check(t)
		}
	})

	t.Run("after Ctrl-C", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s, ended := new(session), make(chan error, 1)
		args := append([]string{"demo", "--listen", "127.0.0.1:0", "--duration", "1h", "--variants", "atomic"}, g.flags...)
		go func() { ended <- run(ctx, args, func(string) string { return "" }, &s.stdout, &s.stderr) }()
		for !strings.Contains(s.stderr.String(), "atomic race") {
			select {
			case err := <-ended:
				t.Fatalf("ended: %v\n%s", err, s.stderr.String())
			case <-time.After(10 * time.Millisecond):
			}
		}
		if during := strings.Join(g.holds(t), "\n"); !strings.Contains(during, "key fs-demo-") || !strings.Contains(during, "topic stock.deductions.fs-demo-") ||
			g.sql != nil && !strings.Contains(during, "purchase demo-") {
			t.Errorf("the demo doesn't use what it was given: %s", during)
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		check(t)
	})

	t.Run("after a failure", func(t *testing.T) {
		o := stackOptions{redis: g.flags[1], kafka: g.flags[3], listen: "127.0.0.1:0"}
		if g.sql != nil {
			o.mysql = g.flags[5]
		}
		s, err := startStack(t.Context(), o, t.Output())
		if err != nil {
			t.Fatal(err)
		}
		broken := errors.New("something broke")
		if err := s.closeAfter(broken); !errors.Is(err, broken) || err.Error() != broken.Error() {
			t.Errorf("error %v", err)
		}
		if _, err := os.Stat(s.dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there: %v", s.dir, err)
		}
		check(t)
	})
}

func TestServersThatAreAwayAreNamed(t *testing.T) {
	for flag, want := range map[string]string{"--redis": "redis", "--kafka": "kafka", "--etcd": "etcd", "--zookeeper": "zookeeper"} {
		s := call(t.Context(), small("--once", flag, "127.0.0.1:1")...)
		if s.err == nil || !strings.Contains(s.err.Error(), want) || !strings.Contains(s.err.Error(), "127.0.0.1:1") {
			t.Errorf("%s: %v", flag, s.err)
		}
	}
	s := call(t.Context(), small("--once", "--mysql", "u:p@tcp(127.0.0.1:1)/db")...)
	if s.err == nil || !strings.Contains(s.err.Error(), "sql") || strings.Contains(s.err.Error(), "u:p") {
		t.Errorf("--mysql: %v", s.err)
	}
}
