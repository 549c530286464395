//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"flashsale/internal/app"
	"flashsale/internal/servers/child"
)

const (
	listening = "the API listens" // what an API logs, with its address
	working   = "the syncer works"

	adminToken = "ratios-admin"
)

// programs starts the processes that are measured.
type programs struct {
	dir string // with the binaries
	env []string
}

func buildPrograms(ctx context.Context, dir string, cfg app.Config, admin bool) (*programs, error) {
	command := exec.CommandContext(ctx, "go", "build", "-o", dir+string(filepath.Separator), "flashsale/cmd/api", "flashsale/cmd/syncer", "flashsale/internal/bench/ratios")
	if output, err := command.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%v: %w\n%s", command.Args, err, output)
	}
	p := &programs{dir: dir}
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "FLASHSALE_") {
			p.env = append(p.env, variable)
		}
	}
	p.env = append(p.env, "FLASHSALE_LISTEN=127.0.0.1:0", "FLASHSALE_ADMIN_LISTEN=off", "FLASHSALE_ADMIN_TOKEN="+adminToken, "FLASHSALE_PREFIX="+cfg.Prefix,
		"FLASHSALE_REDIS_ADDRS="+cfg.RedisAddrs[0], "FLASHSALE_KAFKA_BROKERS="+cfg.KafkaBrokers[0], "FLASHSALE_MYSQL_DSN="+cfg.MySQLDSN)
	if admin { // the last one counts
		p.env = append(p.env, "FLASHSALE_ADMIN_LISTEN=127.0.0.1:0")
	}
	return p, nil
}

// process is one of them, running.
type process struct {
	*child.Child
	addr, admin string
}

func (p *programs) api(ctx context.Context) (*process, error) { return p.start(ctx, listening, "api") }
func (p *programs) syncer(ctx context.Context) (*process, error) {
	return p.start(ctx, working, "syncer")
}
func (p *programs) gin(ctx context.Context) (*process, error) {
	return p.start(ctx, listening, "ratios", "-as", "gin")
}
func (p *programs) single(ctx context.Context) (*process, error) {
	return p.start(ctx, listening, "ratios", "-as", "single")
}

func (p *programs) start(ctx context.Context, ready, name string, args ...string) (*process, error) {
	log := &watched{text: ready, seen: make(chan [2]string, 1)}
	command := exec.Command(filepath.Join(p.dir, name), args...)
	command.Env, command.Stderr = p.env, log
	c, err := child.Start(command)
	if err != nil {
		return nil, err
	}
	select {
	case addrs := <-log.seen:
		return &process{c, addrs[0], addrs[1]}, nil
	case <-c.Done():
		return nil, fmt.Errorf("%s ended: %w\n%s", name, c.Err(), log.tail())
	case <-time.After(30 * time.Second):
		c.Kill()
		return nil, fmt.Errorf("%s does not get ready:\n%s", name, log.tail())
	case <-ctx.Done():
		c.Kill()
		return nil, ctx.Err()
	}
}

func (p *process) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	_ = p.Stop(ctx)
}

// watched is a log that waits for a line.
type watched struct {
	text string
	seen chan [2]string // gets the addr of that line, and its admin

	mu   sync.Mutex
	last []byte
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for line := range bytes.Lines(p) {
		var fields struct{ Msg, Addr, Admin string }
		if json.Unmarshal(line, &fields) == nil && fields.Msg == w.text {
			w.seen <- [2]string{fields.Addr, fields.Admin}
		}
	}
	w.last = append(w.last, p...)
	w.last = w.last[max(0, len(w.last)-4000):]
	return len(p), nil
}

func (w *watched) tail() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(w.last)
}
