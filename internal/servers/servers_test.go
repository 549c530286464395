package servers

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/segmentio/kafka-go"
)

// startable is every kind of server that this machine can start, with a way to
// write something and to look for it later.
type startable struct {
	missing error
	open    func(dir string) Server
	write   func(t *testing.T, s Server)
	check   func(t *testing.T, s Server)
}

func all() map[string]startable {
	return map[string]startable{
		"miniredis":    {nil, func(string) Server { return EmbeddedRedis() }, setKey, getKey},
		"kfake":        {nil, EmbeddedKafka, makeTopic, seeTopic},
		"redis-server": {RedisAvailable(), Redis, setKey, getKey},
		"MariaDB":      {MariaDBAvailable(), func(dir string) Server { return MariaDB(dir) }, insertRow, selectRow},
		"Apache Kafka": {KafkaAvailable(), Kafka, makeTopic, seeTopic},
		"etcd":         {EtcdAvailable(), Etcd, putKey, readKey},
		"ZooKeeper":    {ZooKeeperAvailable(), ZooKeeper, makeNode, seeNode},
	}
}

func TestServersKeepAddressAndDataOverStopAndKill(t *testing.T) {
	for name, test := range all() {
		t.Run(name, func(t *testing.T) {
			if test.missing != nil {
				t.Skip(test.missing)
			}
			t.Parallel()
			s := test.open(t.TempDir())
			t.Cleanup(s.Kill)
			if s.Addr() != "" {
				t.Errorf("address %q before the first start", s.Addr())
			}
			start(t, s)
			addr := s.Addr()
			if !strings.HasPrefix(s.Version(), name) {
				t.Errorf("version %q", s.Version())
			}
			test.write(t, s)
			ends := []struct {
				name string
				end  func() error
			}{
				{"Kill", func() error { s.Kill(); return nil }},
				{"Stop", func() error { return s.Stop(t.Context()) }},
			}
			for _, e := range ends {
				begin := time.Now()
				if err := e.end(); err != nil {
					t.Fatal(err)
				}
				t.Logf("%s: %v", e.name, time.Since(begin).Round(time.Millisecond))
				if dialable(addr) {
					t.Fatalf("%s still answers after %s", addr, e.name)
				}
				start(t, s)
				if s.Addr() != addr {
					t.Fatalf("came back at %s instead of %s", s.Addr(), addr)
				}
				test.check(t, s)
			}
		})
	}
}

func TestStartOfARunningServerAndEndOfAStoppedOneDoNothing(t *testing.T) {
	for name, s := range map[string]Server{"embedded": EmbeddedRedis(), "process": Redis(t.TempDir())} {
		t.Run(name, func(t *testing.T) {
			if s.Real() && RedisAvailable() != nil {
				t.Skip(RedisAvailable())
			}
			s.Kill()
			start(t, s)
			start(t, s)
			for range 2 {
				if err := s.Stop(t.Context()); err != nil {
					t.Error(err)
				}
				s.Kill()
			}
		})
	}
}

func TestRedisLosesNothingAnswered(t *testing.T) {
	s := redisOrSkip(t)
	client := redis.NewClient(&redis.Options{Addr: s.Addr(), MaxRetries: -1})
	defer client.Close()
	killed := make(chan struct{})
	var answered int64
	for {
		n, err := client.Incr(t.Context(), "n").Result()
		if err != nil {
			break
		}
		if answered = n; n == 500 {
			go func() { s.Kill(); close(killed) }()
		}
	}
	<-killed
	start(t, s)
	kept, err := client.Get(t.Context(), "n").Int64()
	if err != nil || kept < answered {
		t.Fatalf("kept %d of %d answered increments: %v", kept, answered, err)
	}
}

func TestRedisIsConfiguredForMoney(t *testing.T) {
	s := redisOrSkip(t)
	client := redis.NewClient(&redis.Options{Addr: s.Addr()})
	defer client.Close()
	for name, want := range map[string]string{"appendonly": "yes", "maxmemory-policy": "noeviction", "bind": "127.0.0.1"} {
		got, err := client.ConfigGet(t.Context(), name).Result()
		if err != nil || got[name] != want {
			t.Errorf("%s is %q instead of %q (%v)", name, got[name], want, err)
		}
	}
}

// A process that lost its port in a race meets another server there.
// Redis waits for a replica that lags before it ends. Where a test has cut one
// off, it would be killed for that in the end, 15 s later.
func TestRedisEndsWithoutItsReplica(t *testing.T) {
	s := redisOrSkip(t)
	conn, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("PSYNC ? -1\r\n")); err != nil { // a replica that never acknowledges
		t.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{Addr: s.Addr()})
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	for info := ""; !strings.Contains(info, "connected_slaves:1"); {
		if info, err = client.Info(ctx, "replication").Result(); err != nil {
			t.Fatal(err)
		}
	}
	setKey(t, s)
	if err := s.Stop(ctx); err != nil {
		t.Error(err)
	}
}

func TestProbeRefusesAnothersAnswer(t *testing.T) {
	s := redisOrSkip(t)
	if _, err := probeRedis(t.Context(), []string{s.Addr()}, os.Getpid()); err == nil {
		t.Error("took another's redis-server for the child")
	}
}

func TestPortLostToARaceIsReplaced(t *testing.T) {
	other := redisOrSkip(t)
	s := Redis(t.TempDir()).(*process)
	t.Cleanup(s.Kill)
	command, attempts := s.command, 0
	s.command = func() (*exec.Cmd, error) {
		if attempts++; attempts == 1 {
			s.ports[0] = portOf(t, other) // somebody was quicker
		}
		return command()
	}
	start(t, s)
	if attempts != 2 || s.Addr() == other.Addr() {
		t.Errorf("%d attempts, address %s", attempts, s.Addr())
	}
}

func TestFailedStartShowsTheLog(t *testing.T) {
	if err := RedisAvailable(); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	// Something that redis-server can neither load nor repair.
	if err := os.MkdirAll(filepath.Join(dir, "appendonlydir"), 0o755); err != nil {
		t.Fatal(err)
	}
	manifest := filepath.Join(dir, "appendonlydir", "appendonly.aof.manifest")
	if err := os.WriteFile(manifest, []byte("rubbish\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	err := Redis(dir).Start(t.Context())
	if err == nil || !strings.Contains(err.Error(), "manifest") {
		t.Errorf("the error does not show the log: %v", err)
	}
}

func TestStartEndsWithItsContext(t *testing.T) {
	if err := KafkaAvailable(); err != nil {
		t.Skip(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	cancel(cause)
	s := Kafka(t.TempDir())
	t.Cleanup(s.Kill)
	if err := s.Start(ctx); !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
}

// Blocking commands of miniredis hang on a context that its Close ends.
func TestMiniredisBlocksAfterARestart(t *testing.T) {
	s := EmbeddedRedis()
	start(t, s)
	s.Kill()
	start(t, s)
	t.Cleanup(s.Kill)
	client := redis.NewClient(&redis.Options{Addr: s.Addr()})
	defer client.Close()
	begin, wait := time.Now(), 50*time.Millisecond
	err := client.XRead(t.Context(), &redis.XReadArgs{Streams: []string{"s", "0"}, Block: wait}).Err()
	if !errors.Is(err, redis.Nil) || time.Since(begin) < wait {
		t.Errorf("after %v: %v", time.Since(begin), err)
	}
}

func TestSQLiteNeedsAFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "missing", "x.db")
	if err := SQLite(path).Start(t.Context()); err == nil {
		t.Error("started in a folder that is not there")
	}
	s := SQLite(filepath.Join(t.TempDir(), "x.db"))
	start(t, s)
	if !strings.HasPrefix(s.DSN(), "sqlite:/") || s.Real() {
		t.Errorf("%s, real %v", s.DSN(), s.Real())
	}
}

func TestGivenServers(t *testing.T) {
	own := redisOrSkip(t)
	s := Given(RedisName, own.Addr())
	start(t, s)
	if s.Version() != own.Version() || s.Addr() != own.Addr() {
		t.Errorf("%s at %s", s.Version(), s.Addr())
	}
	s.Kill()
	s.Stop(t.Context())
	if !dialable(own.Addr()) {
		t.Error("ended a server of somebody else")
	}
	own.Kill()
	if err := s.Start(t.Context()); err == nil {
		t.Error("a server that is away was taken for one that answers")
	}
}

func redisOrSkip(t *testing.T) Server {
	t.Helper()
	if err := RedisAvailable(); err != nil {
		t.Skip(err)
	}
	s := Redis(t.TempDir())
	start(t, s)
	t.Cleanup(s.Kill)
	return s
}

func start(t *testing.T, s Server) {
	t.Helper()
	begin := time.Now()
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("Start: %v", time.Since(begin).Round(time.Millisecond))
}

func dialable(addr string) bool {
	conn, err := net.Dial("tcp", addr)
	if err == nil {
		conn.Close()
	}
	return err == nil
}

func portOf(t *testing.T, s Server) int {
	t.Helper()
	_, port, err := net.SplitHostPort(s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func setKey(t *testing.T, s Server) {
	client := redis.NewClient(&redis.Options{Addr: s.Addr()})
	defer client.Close()
	if err := client.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
}

func getKey(t *testing.T, s Server) {
	client := redis.NewClient(&redis.Options{Addr: s.Addr()})
	defer client.Close()
	if v, err := client.Get(t.Context(), "k").Result(); v != "v" {
		t.Fatalf("got %q, %v", v, err)
	}
}

func insertRow(t *testing.T, s Server) {
	db, err := openMySQL(s.(Database).DSN())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, statement := range []string{"CREATE TABLE x (n INT)", "INSERT INTO x VALUES (7)"} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
}

func selectRow(t *testing.T, s Server) {
	db, err := openMySQL(s.(Database).DSN())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var n int
	if err := db.QueryRowContext(t.Context(), "SELECT n FROM x").Scan(&n); err != nil || n != 7 {
		t.Fatalf("got %d, %v", n, err)
	}
}

func makeTopic(t *testing.T, s Server) {
	client := &kafka.Client{Addr: kafka.TCP(s.Addr())}
	reply, err := client.CreateTopics(t.Context(), &kafka.CreateTopicsRequest{
		Topics: []kafka.TopicConfig{{Topic: "x", NumPartitions: 1, ReplicationFactor: 1}},
	})
	if err != nil || reply.Errors["x"] != nil {
		t.Fatal(err, reply)
	}
	writeMessage(t, s)
}

// writeMessage has one attempt: a server that has started takes it.
func writeMessage(t *testing.T, s Server) {
	writer := &kafka.Writer{
		Addr: kafka.TCP(s.Addr()), Topic: "x", RequiredAcks: kafka.RequireAll, MaxAttempts: 1,
		BatchTimeout: time.Millisecond, Transport: &kafka.Transport{},
	}
	defer writer.Close()
	if err := writer.WriteMessages(t.Context(), kafka.Message{Value: []byte("v")}); err != nil {
		t.Fatal(err)
	}
}

func seeTopic(t *testing.T, s Server) {
	writeMessage(t, s)
	reader := kafka.NewReader(kafka.ReaderConfig{Brokers: []string{s.Addr()}, Topic: "x", Partition: 0, MaxWait: 500 * time.Millisecond})
	defer reader.Close()
	if m, err := reader.ReadMessage(t.Context()); err != nil || string(m.Value) != "v" {
		t.Fatalf("got %q, %v", m.Value, err)
	}
}
