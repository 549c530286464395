package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"flashsale/internal/servers/child"
)

// measurement is one of one lock in one scene.
type measurement struct {
	perSecond     float64
	p50, p99, max time.Duration
	stuck         uint64
}

// measure starts the processes, lets them begin together and gathers what they saw.
func measure(ctx context.Context, addr string, s scene, l contestant, window time.Duration) (m measurement, err error) {
	dir, err := os.MkdirTemp("", "peerbench-")
	if err != nil {
		return m, err
	}
	defer os.RemoveAll(dir)
	allowed := 2*(window+maxDrain) + 10*time.Second
	ctx, cancel := context.WithTimeoutCause(ctx, allowed, fmt.Errorf("not ready after %v", allowed))
	defer cancel()
	defer func() {
		if err != nil && ctx.Err() != nil { // they were killed, so what they said isn't why
			err = fmt.Errorf("%w: %v", context.Cause(ctx), err)
		}
	}()

	keys := []string{"item"}
	if s.ownKeys {
		keys = nil
		for i := range s.contenders {
			keys = append(keys, "item-"+strconv.Itoa(i))
		}
	}
	t := task{Lock: l.name, Addr: addr, Keys: keys, Witness: filepath.Join(dir, "witness"), Window: window}
	w, err := openWitness(t.Witness, len(keys))
	if err != nil {
		return m, err
	}
	defer w.close()

	var contending []*process
	defer func() {
		for _, p := range contending {
			p.kill()
		}
	}()
	for i := range s.processes {
		next := s.contenders * (i + 1) / s.processes
		t.Workers = next - t.First
		p, err := start(t)
		if err != nil {
			return m, err
		}
		contending = append(contending, p)
		t.First = next
	}
	stopped := context.AfterFunc(ctx, func() {
		for _, p := range contending {
			p.kill()
		}
	})
	defer stopped()
	for _, p := range contending {
		if err := p.expect(ready); err != nil {
			return m, fmt.Errorf("before it began: %w", err)
		}
	}
	for _, p := range contending {
		fmt.Fprintln(p.stdin, begin)
	}
	var all outcome
	for _, p := range contending {
		o, err := p.outcome()
		if err != nil {
			return m, fmt.Errorf("after it began: %w", err)
		}
		all.Cycles += o.Cycles
		all.InTime += o.InTime
		all.Stuck += o.Stuck
		all.WaitsNs = append(all.WaitsNs, o.WaitsNs...)
	}
	if err := w.verify(all.Cycles); err != nil {
		return m, err
	}
	slices.Sort(all.WaitsNs)
	at := func(percent int) time.Duration { return all.WaitsNs[(len(all.WaitsNs)-1)*percent/100] }
	return measurement{
		perSecond: float64(all.InTime) / window.Seconds(), p50: at(50), p99: at(99), max: at(100), stuck: all.Stuck,
	}, nil
}

// process is a contending one. It dies with this one.
type process struct {
	child  *child.Child
	stdin  *os.File
	stdout *os.File
	lines  *bufio.Reader
	stderr *strings.Builder
}

func start(t task) (*process, error) {
	encoded, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	theirIn, stdin, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer theirIn.Close()
	stdout, theirOut, err := os.Pipe()
	if err != nil {
		stdin.Close()
		return nil, err
	}
	defer theirOut.Close()
	p := &process{stdin: stdin, stdout: stdout, lines: bufio.NewReader(stdout), stderr: &strings.Builder{}}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), envTask+"="+string(encoded))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirIn, theirOut, p.stderr
	if p.child, err = child.Start(cmd); err != nil {
		stdin.Close()
		stdout.Close()
		return nil, err
	}
	return p, nil
}

func (p *process) expect(want string) error {
	line, err := p.lines.ReadString('\n')
	if err != nil {
		return p.failed(err)
	}
	if line = strings.TrimSpace(line); line != want {
		return fmt.Errorf("a contending process said %q", line)
	}
	return nil
}

func (p *process) outcome() (o outcome, err error) {
	if err := json.NewDecoder(p.lines).Decode(&o); err != nil {
		return o, p.failed(err)
	}
	return o, o.verify()
}

// failed says why nothing more comes from the process.
func (p *process) failed(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		p.child.Kill()
		return fmt.Errorf("a contending process: %v: %s", p.child.Err(), strings.TrimSpace(p.stderr.String()))
	}
	return err
}

func (p *process) kill() {
	p.child.Kill()
	p.stdin.Close()
	p.stdout.Close()
}
