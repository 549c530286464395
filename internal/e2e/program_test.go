//go:build unix

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"flashsale/internal/servers/child"
)

const (
	adminToken = "e2e-admin-token"

	startTimeout = 60 * time.Second // of a program, on a busy machine
	endTimeout   = 25 * time.Second // FLASHSALE_SHUTDOWN_TIMEOUT and the relay's lease
)

// program is a child process. When the test ends it is told to, and must exit
// with 0, unless it was killed before.
type program struct {
	t     testing.TB
	name  string
	child *child.Child
	log   *logbook
	addr  string // of an API, host:port
	url   string
}

// api starts one; the settings are NAME=value without FLASHSALE_.
func (in *installation) api(t testing.TB, settings ...string) *program {
	t.Helper()
	p := in.start(t, "api", settings)
	p.addr = p.await("the API listens", "addr")
	p.url = "http://" + p.addr
	return p
}

func (in *installation) syncer(t testing.TB, settings ...string) *program {
	t.Helper()
	p := in.start(t, "syncer", settings)
	p.await("the syncer works", "admin")
	return p
}

func (in *installation) start(t testing.TB, name string, settings []string) *program {
	t.Helper()
	command := exec.Command(binary(t, name))
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "FLASHSALE_") {
			command.Env = append(command.Env, variable)
		}
	}
	for _, setting := range append([]string{
		"LISTEN=127.0.0.1:0", "ADMIN_LISTEN=off", "ADMIN_TOKEN=" + adminToken, "PREFIX=" + in.prefix,
		"REDIS_ADDRS=" + in.redis, "KAFKA_BROKERS=" + in.kafka, "MYSQL_DSN=" + in.dsn,
	}, settings...) {
		command.Env = append(command.Env, "FLASHSALE_"+setting) // the last one counts
	}
	p := &program{t: t, name: name, log: &logbook{}}
	command.Stderr = p.log
	var err error
	if p.child, err = child.Start(command); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.end()
		if t.Failed() {
			t.Logf("%s's log ends with:\n%s", p.name, p.log.tail())
		}
	})
	return p
}

// await waits for a line of the log and returns one of its fields.
func (p *program) await(message, field string) string {
	p.t.Helper()
	var value string
	eventually(p.t, startTimeout, p.name+" says "+message, func() bool {
		select {
		case <-p.child.Done():
			p.t.Fatalf("%s ended (%v):\n%s", p.name, p.child.Err(), p.log.tail())
		default:
		}
		found := false
		value, found = p.log.find(message, field)
		return found
	})
	return value
}

// kill is a SIGKILL.
func (p *program) kill() { p.child.Kill() }

func (p *program) running() bool {
	select {
	case <-p.child.Done():
		return false
	default:
		return true
	}
}

func (p *program) signal(signal syscall.Signal) {
	p.t.Helper()
	if err := p.child.Signal(signal); err != nil {
		p.t.Fatal(err)
	}
}

// end is a SIGTERM, and wants 0. A program that has ended is left alone.
func (p *program) end() (took time.Duration) {
	p.t.Helper()
	if !p.running() {
		return 0
	}
	began := time.Now()
	_ = p.child.Signal(syscall.SIGCONT) // a stopped one hears nothing
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	if err := p.child.Stop(ctx); err != nil {
		p.t.Error(err)
	} else if err := p.child.Err(); err != nil {
		p.t.Errorf("%s ended with %v", p.name, err)
	}
	return time.Since(began)
}

// logbook keeps what a program writes to stderr: lines of JSON, and what the
// runtime says when it dies.
type logbook struct {
	mu   sync.Mutex
	text []byte
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, p...)
	return len(p), nil
}

func (l *logbook) find(message, field string) (value string, found bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range bytes.Lines(l.text) {
		var fields map[string]any
		if json.Unmarshal(line, &fields) == nil && fields["msg"] == message {
			value, _ = fields[field].(string)
			return value, true
		}
	}
	return "", false
}

func (l *logbook) tail() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text[max(0, len(l.text)-6000):])
}
