package servers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"flashsale/internal/servers/child"
)

const (
	startTimeout = 60 * time.Second // a JVM on a busy machine
	stopTimeout  = 15 * time.Second
	probePause   = 15 * time.Millisecond
	logTail      = 4096 // bytes of a log that an error shows
)

// errPortTaken: another process was quicker. A new port helps.
var errPortTaken = errors.New("servers: port taken")

// process is what the real servers have in common: ports that stay, a child
// process that comes and goes, and a log.
type process struct {
	name  string
	dir   string
	wants int // ports

	// setup runs before the first start, command before each.
	setup   func(ctx context.Context) error
	command func() (*exec.Cmd, error)

	// probe asks the server on the first port who it is. It fails unless that
	// is the child with this process ID: a port that was lost in a race answers
	// too. Its result is product and version.
	probe func(ctx context.Context, pid int) (version string, err error)

	mu      sync.Mutex
	ports   []int
	fixed   bool // it has run: the ports are known outside
	ready   bool // setup is done
	child   *child.Child
	version string
}

func (p *process) Name() string { return p.name }
func (p *process) Real() bool   { return true }

func (p *process) Version() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.version
}

func (p *process) Addr() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.ports) == 0 {
		return ""
	}
	return loopback(p.ports[0])
}

func (p *process) Start(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()

	if !p.ready {
		if err := os.MkdirAll(p.dir, 0o755); err != nil {
			return fmt.Errorf("servers: %s: %w", p.name, err)
		}
		if p.setup != nil {
			if err := p.setup(ctx); err != nil {
				return fmt.Errorf("servers: %s: %w", p.name, err)
			}
		}
		p.ready = true
	}
	for {
		err := p.launch(ctx)
		if err == nil {
			p.fixed = true
			return nil
		}
		// A server that has run must come back where it was.
		if !errors.Is(err, errPortTaken) || p.fixed {
			return fmt.Errorf("servers: %s: %w", p.name, err)
		}
	}
}

// launch starts the child once and waits until it answers.
func (p *process) launch(ctx context.Context) error {
	if !p.fixed {
		ports, err := freePorts(p.wants)
		if err != nil {
			return err
		}
		p.ports = ports
	}
	cmd, err := p.command()
	if err != nil {
		return err
	}
	logFile, err := os.Create(p.logPath())
	if err != nil {
		return err
	}
	defer logFile.Close() // the child has its own handle
	cmd.Stdout, cmd.Stderr = logFile, logFile
	if p.child, err = child.Start(cmd); err != nil {
		return err
	}
	if err := p.await(ctx); err != nil {
		p.child.Kill()
		return err
	}
	return nil
}

// await returns when the child has answered.
func (p *process) await(ctx context.Context) error {
	pause := time.NewTicker(probePause)
	defer pause.Stop()
	var last error
	for {
		if p.version, last = p.probe(ctx, p.child.Pid()); last == nil {
			return nil
		}
		select {
		case <-p.child.Done():
			tail := p.tail()
			if strings.Contains(tail, "ddress already in use") {
				return fmt.Errorf("%w: %s", errPortTaken, tail)
			}
			return fmt.Errorf("ended at once (%v); its log ends with:\n%s", p.child.Err(), tail)
		case <-ctx.Done():
			return fmt.Errorf("no answer (%w, last: %v); its log ends with:\n%s", context.Cause(ctx), last, p.tail())
		case <-pause.C:
		}
	}
}

func (p *process) Stop(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.running() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	if err := p.child.Stop(ctx); err != nil {
		return fmt.Errorf("servers: %s: %w", p.name, err)
	}
	return nil
}

func (p *process) Kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running() {
		p.child.Kill()
	}
}

func (p *process) running() bool {
	if p.child == nil {
		return false
	}
	select {
	case <-p.child.Done():
		return false
	default:
		return true
	}
}

// run executes a command of the setup to its end.
func (p *process) run(ctx context.Context, cmd *exec.Cmd) error {
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := child.Run(ctx, cmd); err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(cmd.Path), err, last(output.Bytes()))
	}
	return nil
}

func (p *process) logPath() string { return filepath.Join(p.dir, "log") }

func (p *process) tail() string {
	f, err := os.Open(p.logPath())
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil {
		return err.Error()
	}
	return last(text)
}

func last(text []byte) string {
	if len(text) > logTail {
		text = text[len(text)-logTail:]
	}
	return strings.TrimSpace(string(text))
}
