package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"
)

// test is one run of a script.
type test struct {
	cfg        config
	registry   *registry
	options    *options
	thresholds []*threshold
	cancel     context.CancelCauseFunc // stops setup and scenarios, not teardown
}

var (
	errSetupTimeout    = errors.New("setup() took longer than setupTimeout")
	errTeardownTimeout = errors.New("teardown() took longer than teardownTimeout")
	errTooLong         = errors.New("the run took longer than -max-duration")
	errOver            = errors.New("the scenario's time is over")
)

// execute is the life cycle: init, setup, scenarios, teardown, thresholds,
// handleSummary. A script that fails in setup gets no teardown, as in k6.
func execute(ctx context.Context, cfg config) int {
	ctx, cancel := context.WithTimeoutCause(ctx, cfg.maxDuration, errTooLong)
	defer cancel()
	t := &test{cfg: cfg, registry: newRegistry()}

	first, err := newVU(0, cfg, t)
	if err != nil {
		cfg.logf("error", "init: %v", err)
		return exitException
	}
	if err := t.configure(first); err != nil {
		cfg.logf("error", "%v", err)
		return exitInvalid
	}
	defer first.client.CloseIdleConnections()
	vus, err := t.makeVUs()
	if err != nil {
		cfg.logf("error", "init: %v", err)
		return exitException
	}

	started := time.Now()
	code := t.live(ctx, first, vus)
	for range cap(vus) {
		(<-vus).client.CloseIdleConnections()
	}
	return t.finish(ctx, code, time.Since(started))
}

// configure reads the options, now that init code has declared the metrics.
func (t *test) configure(first *vu) error {
	data, err := first.stringify(first.exports.Get("options"))
	if err != nil {
		return err
	}
	if data == nil {
		return errors.New("the script exports no options")
	}
	if t.options, err = parseOptions(data, t.cfg); err != nil {
		return err
	}
	for _, s := range t.options.Scenarios {
		if first.function(s.Exec) == nil {
			return fmt.Errorf("scenario %q: the script exports no function %q", s.name, s.Exec)
		}
	}
	t.thresholds, err = t.options.parseThresholds(t.registry)
	return err
}

// makeVUs makes as many as can be needed at once; scenarios borrow them.
func (t *test) makeVUs() (chan *vu, error) {
	pool := make(chan *vu, t.options.peakVUs())
	for id := 1; id <= cap(pool); id++ {
		v, err := newVU(id, t.cfg, t)
		if err != nil {
			return nil, err
		}
		pool <- v
	}
	return pool, nil
}

// live runs setup, scenarios and teardown, and returns the exit code so far.
func (t *test) live(ctx context.Context, first *vu, vus chan *vu) int {
	running, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	t.cancel = cancel

	data, err := t.phase(running, first, "setup", t.options.SetupTimeout, errSetupTimeout)
	if err != nil {
		t.cfg.logf("error", "setup: %v", err)
		return codeOf(err)
	}
	var wg sync.WaitGroup
	for _, s := range t.options.Scenarios {
		wg.Go(func() { t.scenario(running, s, vus, data) })
	}
	wg.Wait()

	code := exitOK
	if cause := context.Cause(running); cause != nil {
		t.cfg.logf("error", "stopped: %v", cause)
		code = codeOf(cause)
	}
	if _, err := t.phase(ctx, first, "teardown", t.options.TeardownTimeout, errTeardownTimeout, data); err != nil {
		t.cfg.logf("error", "teardown: %v", err)
		code = firstFailure(code, codeOf(err))
	}
	return code
}

// phase calls setup or teardown, if the script has it, and returns its result as JSON.
func (t *test) phase(ctx context.Context, v *vu, name string, limit duration, late error, data ...[]byte) ([]byte, error) {
	if v.function(name) == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, time.Duration(limit), late)
	defer cancel()
	v.tags = map[string]string{"group": "::" + name}
	value, err := v.call(ctx, name, data...)
	if err != nil {
		return nil, err
	}
	return v.stringify(value)
}

// iterate runs one iteration. What it throws is logged, and the run goes on: a
// script must not rely on exceptions to fail, here as in k6.
func (v *vu) iterate(ctx context.Context, at *iteration, data []byte) {
	v.iteration = at
	v.tags = map[string]string{"scenario": at.scenario.name}
	maps.Copy(v.tags, at.scenario.Tags)
	must(v.rt.Set("__ITER", at.inScenario))
	defer func() { v.iteration = nil }()

	started := time.Now()
	if _, err := v.call(ctx, at.scenario.Exec, data); err != nil {
		v.cfg.logf("error", "iteration: %v", err)
		if ctx.Err() != nil {
			return // interrupted ones are not counted
		}
	}
	v.test.registry.addTo("iterations", 1, v.tags)
	v.test.registry.addTo("iteration_duration", milliseconds(time.Since(started)), v.tags)
}

// sequence counts 0, 1, 2, ...
type sequence struct {
	mu   sync.Mutex
	next int64
}

func (s *sequence) take() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next++
	return s.next - 1
}

// finish judges the thresholds and lets the script write its summary, from a VU
// of its own, as k6 does.
func (t *test) finish(ctx context.Context, code int, elapsed time.Duration) int {
	for _, th := range t.thresholds {
		th.judge(elapsed)
		if th.failed {
			code = firstFailure(code, exitThresholds)
		}
	}
	if err := t.summarize(ctx, elapsed); err != nil {
		t.cfg.logf("error", "handleSummary: %v", err)
	}
	return code
}

// firstFailure keeps the code of what went wrong first.
func firstFailure(first, second int) int {
	if first != exitOK {
		return first
	}
	return second
}

func codeOf(err error) int {
	switch {
	case errors.Is(err, errSetupTimeout):
		return exitSetupTimeout
	case errors.Is(err, errTeardownTimeout):
		return exitTeardownTimeout
	case errors.Is(err, errNotLoopback):
		return exitInvalid
	case errors.Is(err, errAborted):
		return exitAborted
	case errors.Is(err, errTooLong), errors.Is(err, context.Canceled):
		return exitInterrupted
	default:
		return exitException
	}
}
