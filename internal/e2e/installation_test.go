//go:build unix

package e2e

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"flashsale/internal/kafkastock"
	"flashsale/internal/rediskey"
	"flashsale/internal/redisstock"
	"flashsale/internal/servers"
	"flashsale/internal/servers/servertest"
	"flashsale/internal/sqlstock"
)

// installation is one prefix on three servers, and the test's own way to them.
type installation struct {
	redis, kafka, dsn string
	prefix            string

	client *redis.Client
	db     *sql.DB
	topics kafkastock.Options
	pid    int // of a Redis of the test's own
}

// own names the servers that a test wants for itself; nil is a shared one.
type own struct {
	redis, kafka servers.Server
	sql          servers.Database
}

// install makes tables and topics, and takes them away again if others use the
// same servers.
func install(t testing.TB, own own) *installation {
	t.Helper()
	in := &installation{prefix: servertest.Prefix(t)}
	if own.sql != nil {
		in.dsn = own.sql.DSN()
	} else {
		in.dsn = servertest.RealSQL(t)
	}
	if own.redis != nil {
		in.redis = own.redis.Addr()
	} else {
		in.redis = servertest.Redis(t)
	}
	if own.kafka != nil {
		in.kafka = own.kafka.Addr()
	} else {
		in.kafka = strings.Join(servertest.Kafka(t), ",")
	}

	in.client = redis.NewClient(&redis.Options{Addr: in.redis, MaxRetries: -1})
	t.Cleanup(func() { in.client.Close() })
	ledger, err := sqlstock.Open(in.dsn, sqlstock.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer ledger.Close()
	if err := ledger.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if in.db, err = sql.Open("mysql", withTimes(in.dsn)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.db.Close() })
	in.topics = kafkastock.Options{Brokers: strings.Split(in.kafka, ","), Topics: kafkastock.Names(in.prefix)}
	if err := kafkastock.EnsureTopics(t.Context(), in.topics); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.remove(t, own) })
	return in
}

// remove cleans shared servers. What a killed syncer still holds in Kafka can't
// be removed yet, which is no fault.
func (in *installation) remove(t testing.TB, own own) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if own.redis == nil {
		if err := redisstock.New(in.client, redisstock.Options{Keys: in.keys()}).Purge(ctx); err != nil {
			t.Error(err)
		}
	}
	if own.kafka == nil {
		if err := kafkastock.DeleteTopics(ctx, in.topics); err != nil {
			t.Log(err)
		}
	}
}

func (in *installation) keys() rediskey.Keys { return rediskey.Keys{Prefix: in.prefix} }

// outbox counts the entries that wait for the relay.
func (in *installation) outbox(t testing.TB) (entries int64) {
	t.Helper()
	for shard := range rediskey.Shards {
		n, err := in.client.XLen(context.Background(), in.keys().Outbox(shard)).Result()
		if err != nil {
			t.Fatal(err)
		}
		entries += n
	}
	return entries
}

func withTimes(dsn string) string {
	separator := "?"
	if strings.Contains(dsn, "?") {
		separator = "&"
	}
	return dsn + separator + "parseTime=true&timeout=3s&readTimeout=30s"
}

// eventually polls until what is wanted holds, and fails the test when it does
// not in time.
func eventually(t testing.TB, within time.Duration, what string, holds func() bool) {
	t.Helper()
	began := time.Now()
	pause := time.NewTicker(10 * time.Millisecond)
	defer pause.Stop()
	for !holds() {
		if time.Since(began) > within {
			t.Fatalf("not within %v: %s", within, what)
		}
		<-pause.C
	}
	t.Logf("%s: after %v", what, time.Since(began).Round(time.Millisecond))
}
