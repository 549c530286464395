package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"flashsale/internal/servers"
	"flashsale/internal/servers/servertest"
)

func TestExitCodeIsTheCommands(t *testing.T) {
	for script, want := range map[string]int{"exit 0": 0, "exit 3": 3, "kill -9 $$": 1} {
		if got := execute(t.Context(), exec.Command("sh", "-c", script), io.Discard); got != want {
			t.Errorf("%s: %d", script, got)
		}
	}
	if got := execute(t.Context(), exec.Command("/does/not/exist"), io.Discard); got != 127 {
		t.Errorf("a command that is not there: %d", got)
	}
	if got := run(nil, io.Discard, io.Discard); got != 2 {
		t.Errorf("no command: %d", got)
	}
}

func TestASignalEndsTheCommand(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", `trap 'echo interrupted; exit 5' INT; echo ready; while :; do sleep 0.01; done`)
	cmd.Stdout = write
	code := make(chan int)
	go func() { code <- execute(ctx, cmd, io.Discard) }()
	buffer := make([]byte, 64)
	if n, _ := read.Read(buffer); string(buffer[:n]) != "ready\n" {
		t.Fatalf("got %q", buffer[:n])
	}
	cancel()
	if got := <-code; got != 130 {
		t.Errorf("exit code %d", got)
	}
	write.Close()
	if rest, _ := io.ReadAll(read); string(rest) != "interrupted\n" {
		t.Errorf("the command was not asked: %q", rest)
	}
}

func TestATestCountsOnceUnderTheWorstItGot(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tally")
	lines := "redis\treal\ta.test\tTestA\nkafka\tstand-in\ta.test\tTestA\nredis\treal\ta.test\tTestA\n" +
		"redis\treal\tb.test\tTestA\nsql\tskipped\tb.test\tTestB\n"
	if err := os.WriteFile(path, []byte(lines), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := readTally(path); !maps.Equal(got, map[string]int{"stand-in": 1, "real": 1, "skipped": 1}) {
		t.Errorf("got %v", got)
	}
}

func TestSummaryTellsRealFromStandIn(t *testing.T) {
	missing := errors.New("redis-server is not installed\nlog")
	stores := []*store{
		{name: servers.RedisName, why: missing},
		{name: servers.SQLName, server: versioned{servers.EmbeddedRedis()}},
		{name: servers.EtcdName, why: errors.New("etcd is not installed"), skips: true},
		{name: servers.PromtoolName, found: "promtool 1.2.3", skips: true},
	}
	var out bytes.Buffer
	summary(&out, stores, "/does/not/exist")
	want := `servers of this run:
  redis     STAND-IN  redis-server is not installed (make deps installs the real one)
  sql       real      MariaDB 1.2.3 (stands for MySQL)
  etcd      MISSING   etcd is not installed (make deps installs it); tests that need it were SKIPPED
  promtool  found     promtool 1.2.3
tests on real servers: 0, on a stand-in: 0, skipped for want of a real server: 0
`
	if out.String() != want {
		t.Errorf("got\n%s", out.String())
	}
	if got := stores[0].value(); got != servertest.Embedded {
		t.Errorf("tests are told %q", got)
	}
}

type versioned struct{ servers.Server }

func (versioned) Version() string { return "MariaDB 1.2.3" }

func TestAServerThatDoesNotStartIsAStandIn(t *testing.T) {
	broken := &store{
		name:      servers.SQLName,
		available: func() error { return nil },
		open: func(dir string) servers.Server {
			return servers.SQLite(filepath.Join(dir, "missing", "x.db"))
		},
	}
	var out bytes.Buffer
	nowhere := &store{name: servers.EtcdName, available: func() error { return errors.New("not installed") }, skips: true}
	bringUp(t.Context(), t.TempDir(), []*store{nowhere}, &out)
	if !strings.Contains(out.String(), "SKIPPED: not installed") {
		t.Errorf("printed\n%s", out.String())
	}
	out.Reset()
	missing := &store{name: servers.PromtoolName, available: nowhere.available, skips: true}
	found := &store{name: servers.PromtoolName, available: func() error { return nil }, version: func() (string, error) { return "promtool 1.2.3", nil }}
	bringUp(t.Context(), t.TempDir(), []*store{missing, found}, &out)
	if !strings.Contains(out.String(), "promtool  NOT FOUND, tests that need it are SKIPPED: not installed") || !strings.Contains(out.String(), "promtool  promtool 1.2.3\n") {
		t.Errorf("printed\n%s", out.String())
	}
	out.Reset()
	bringUp(t.Context(), t.TempDir(), []*store{broken}, &out)
	if broken.server != nil || !strings.Contains(out.String(), "NO REAL SERVER") || strings.Contains(out.String(), "make deps") {
		t.Errorf("printed\n%s", out.String())
	}
}

func TestOnlyWhatIsMissingIsInstalled(t *testing.T) {
	there := func() error { return nil }
	missing := func() error { return errors.New("missing") }
	got := missingPackages([]*store{
		{packages: []string{"redis-server"}, available: there},
		{packages: []string{"mariadb-server"}, available: missing},
	})
	if len(got) != 1 || got[0] != "mariadb-server" {
		t.Errorf("got %v", got)
	}
}
