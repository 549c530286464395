package servertest

import (
	"bufio"
	"context"
	"database/sql"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"flashsale/internal/servers"
	"flashsale/internal/servers/child"
)

func TestEachTestGetsAnEmptyDatabaseThatGoesAgain(t *testing.T) {
	var dsns []string
	for range 2 {
		t.Run("", func(t *testing.T) {
			dsn := SQL(t)
			dsns = append(dsns, dsn)
			if strings.HasPrefix(dsn, "sqlite:") {
				return
			}
			db := open(t, dsn)
			if _, err := db.Exec("CREATE TABLE x (n INT)"); err != nil {
				t.Fatal(err)
			}
		})
	}
	if dsns[0] == dsns[1] {
		t.Errorf("two tests share %s", dsns[0])
	}
	for _, dsn := range dsns {
		if path, ok := strings.CutPrefix(dsn, "sqlite:"); ok {
			if _, err := os.Stat(filepath.Dir(path)); err == nil {
				t.Errorf("%s is still there", path)
			}
		} else if err := open(t, dsn).Ping(); err == nil || !strings.Contains(err.Error(), "Unknown database") {
			t.Errorf("%s is still there: %v", dsn, err)
		}
	}
}

func TestSharedServersAreShared(t *testing.T) {
	if a, b := Redis(t), Redis(t); a != b {
		t.Errorf("%s, then %s", a, b)
	}
	client := redis.NewClient(&redis.Options{Addr: Redis(t)})
	defer client.Close()
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Error(err)
	}
	if brokers := Kafka(t); len(brokers) == 0 || !strings.Contains(brokers[0], ":") {
		t.Errorf("brokers %q", brokers)
	}
}

func TestOwnServersAreNotTheSharedOnes(t *testing.T) {
	s := RedisServer(t)
	if s.Addr() == Redis(t) {
		t.Fatal("killing it would hurt other tests")
	}
	s.Kill()
	if err := s.Start(t.Context()); err != nil {
		t.Error(err)
	}
	if a, b := SQLServer(t), SQLServer(t); a.DSN() == b.DSN() {
		t.Errorf("both are %s", a.DSN())
	}
}

func TestPrefixesDifferAndFit(t *testing.T) {
	a, b := Prefix(t), Prefix(t)
	if a == b || !regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`).MatchString(a) {
		t.Errorf("%s, %s", a, b)
	}
}

func TestStandInsAreToldAndCounted(t *testing.T) {
	tally := filepath.Join(t.TempDir(), "tally")
	output := again(t, "TestUsesEverything", EnvTally+"="+tally,
		EnvRedis+"="+Embedded, EnvKafka+"="+Embedded, EnvSQL+"="+Embedded, EnvEtcd+"="+Embedded, EnvZooKeeper+"="+Embedded)
	for _, want := range []string{"STAND-IN miniredis", "STAND-IN kfake", "STAND-IN SQLite"} {
		if !strings.Contains(output, want) {
			t.Errorf("no %q in\n%s", want, output)
		}
	}
	text, err := os.ReadFile(tally)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(string(text)) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		if len(fields) != 4 || !strings.HasPrefix(fields[3], "TestUsesEverything") {
			t.Fatalf("line %q", line)
		}
		got = append(got, fields[0]+" "+fields[1])
	}
	if want := []string{"redis stand-in", "kafka stand-in", "sql stand-in", "sql skipped", "etcd skipped", "etcd skipped", "zookeeper skipped", "zookeeper skipped"}; !slices.Equal(got, want) {
		t.Errorf("counted %q", got)
	}
}

// TestUsesEverything is run by another test, in a process of its own.
func TestUsesEverything(t *testing.T) {
	if os.Getenv(EnvTally) == "" || os.Getenv(EnvRedis) != Embedded {
		t.Skip("for TestStandInsAreToldAndCounted")
	}
	Redis(t)
	Kafka(t)
	SQL(t)
	t.Run("own SQL", func(t *testing.T) { SQLServer(t) })
	t.Run("etcd", func(t *testing.T) { Etcd(t) })
	t.Run("own etcd", func(t *testing.T) { EtcdServer(t) })
	t.Run("ZooKeeper", func(t *testing.T) { ZooKeeper(t) })
	t.Run("own ZooKeeper", func(t *testing.T) { ZooKeeperServer(t) })
}

// A test process that is killed takes its servers and their files along.
func TestServersEndWithTheTestProcess(t *testing.T) {
	if err := servers.RedisAvailable(); err != nil {
		t.Skip(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestStartsRedisAndHangs$", "-test.v")
	cmd.Env = append(os.Environ(), "SERVERTEST_HANG=1", EnvRedis+"=")
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	process, err := child.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(process.Kill)
	var addr, dir string
	lines := bufio.NewScanner(pipe)
	for dir == "" && lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), "started "); ok {
			addr, dir, _ = strings.Cut(rest, " ")
		}
	}
	if addr == "" {
		t.Fatal("the test process did not start its server")
	}
	process.Kill()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	gone := func() bool {
		conn, answers := net.Dial("tcp", addr)
		if answers == nil {
			conn.Close()
		}
		_, err := os.Stat(dir)
		return answers != nil && os.IsNotExist(err)
	}
	for !gone() {
		if ctx.Err() != nil {
			t.Fatalf("%s or %s outlived the test process", addr, dir)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestStartsRedisAndHangs(t *testing.T) {
	if os.Getenv("SERVERTEST_HANG") == "" {
		t.Skip("for TestServersEndWithTheTestProcess")
	}
	addr := Redis(t)
	dir, err := processDir()
	if err != nil {
		t.Fatal(err)
	}
	os.Stdout.WriteString("\nstarted " + addr + " " + dir + "\n")
	select {}
}

// again runs one test of this binary in a process of its own.
func again(t *testing.T, test string, env ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+test+"$", "-test.v")
	cmd.Env = append(os.Environ(), env...)
	output, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return string(output)
}

func open(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}
