package main

import (
	"context"
	"sync"
	"time"
)

// executor is one of k6's ways to run iterations, with the options it has
// beside those of every scenario.
type executor struct {
	fields, required []string
	run              func(*running)
}

var executors = map[string]executor{
	"per-vu-iterations":     {fields: []string{"vus", "iterations", "maxDuration"}, run: (*running).perVUIterations},
	"shared-iterations":     {fields: []string{"vus", "iterations", "maxDuration"}, run: (*running).sharedIterations},
	"constant-vus":          {fields: []string{"vus", "duration"}, required: []string{"duration"}, run: (*running).constantVUs},
	"ramping-vus":           {fields: []string{"startVUs", "stages", "gracefulRampDown"}, required: []string{"stages"}, run: (*running).rampingVUs},
	"constant-arrival-rate": {fields: []string{"rate", "timeUnit", "duration", "preAllocatedVUs", "maxVUs"}, required: []string{"rate", "duration", "preAllocatedVUs"}, run: (*running).constantArrivals},
	"ramping-arrival-rate":  {fields: []string{"startRate", "timeUnit", "stages", "preAllocatedVUs", "maxVUs"}, required: []string{"stages", "preAllocatedVUs"}, run: (*running).rampingArrivals},
}

// running is a scenario that has started.
type running struct {
	*scenario
	ctx      context.Context // ends gracefulStop after the scenario's length
	test     *test
	vus      []*vu
	data     []byte
	started  time.Time
	sequence sequence
	wg       sync.WaitGroup
}

// scenario waits for the start time, borrows VUs and runs the executor. No
// iteration begins after the scenario's length, and none goes on for longer
// than gracefulStop after it.
func (t *test) scenario(ctx context.Context, s *scenario, pool chan *vu, data []byte) {
	if !wait(ctx, time.Duration(s.StartTime)) {
		return
	}
	r := &running{scenario: s, test: t, data: data, started: time.Now(), vus: make([]*vu, s.peak())}
	ctx, cancel := context.WithTimeoutCause(ctx, s.length()+time.Duration(s.GracefulStop), errOver)
	defer cancel()
	r.ctx = ctx
	for i := range r.vus {
		r.vus[i] = <-pool // there are enough, peakVUs() sees to that
	}
	executors[s.Executor].run(r)
	r.wg.Wait()
	for _, v := range r.vus {
		pool <- v
	}
}

// wait returns false when ctx ends first.
func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// open reports whether an iteration may still begin.
func (r *running) open() bool {
	return r.ctx.Err() == nil && time.Since(r.started) < r.length()
}

// iterate runs one iteration, the VU's n-th.
func (r *running) iterate(ctx context.Context, v *vu, n int) {
	v.iterate(ctx, &iteration{scenario: r.scenario, started: r.started, inTest: r.sequence.take(), inScenario: n}, r.data)
}

// drop counts iterations that did not begin, with the tag scenario.
func (r *running) drop(n int) {
	tags := map[string]string{"scenario": r.name}
	for range n {
		r.test.registry.addTo("dropped_iterations", 1, tags)
	}
}

func (r *running) perVUIterations() {
	for _, v := range r.vus {
		r.wg.Go(func() {
			for n := range r.Iterations {
				if !r.open() {
					r.drop(r.Iterations - n)
					return
				}
				r.iterate(r.ctx, v, n)
			}
		})
	}
}

func (r *running) sharedIterations() {
	var taken sequence
	for _, v := range r.vus {
		r.wg.Go(func() {
			for n := 0; taken.take() < int64(r.Iterations); n++ {
				if !r.open() {
					r.drop(1)
					continue
				}
				r.iterate(r.ctx, v, n)
			}
		})
	}
}

func (r *running) constantVUs() {
	for _, v := range r.vus {
		r.wg.Go(func() {
			for n := 0; r.open(); n++ {
				r.iterate(r.ctx, v, n)
			}
		})
	}
}

// rampingVUs keeps as many VUs at work as the stages say at each moment. One
// that is too many finishes its iteration, for gracefulRampDown at most.
func (r *running) rampingVUs() {
	stop := make([]func(), 0, len(r.vus)) // of those at work
	idle := make(chan *vu, len(r.vus))
	for _, v := range r.vus {
		idle <- v
	}
	for r.open() {
		want := int(r.at(time.Since(r.started), r.StartVUs) + 0.5)
		for len(stop) > want {
			stop[len(stop)-1]()
			stop = stop[:len(stop)-1]
		}
		for len(stop) < want && len(idle) > 0 {
			v, leave := <-idle, make(chan struct{})
			ctx, cancel := context.WithCancelCause(r.ctx)
			stop = append(stop, func() {
				close(leave)
				time.AfterFunc(time.Duration(r.GracefulRampDown), func() { cancel(errOver) })
			})
			r.wg.Go(func() {
				defer func() { cancel(nil); idle <- v }()
				for n := 0; r.open(); n++ {
					select {
					case <-leave:
						return
					default:
					}
					r.iterate(ctx, v, n)
				}
			})
		}
		if !wait(r.ctx, 5*time.Millisecond) {
			return
		}
	}
}

// constantArrivals begins an iteration each timeUnit/rate. Without a free VU it
// is dropped.
func (r *running) constantArrivals() {
	r.arrivals(func(time.Duration) float64 { return float64(r.Rate) })
}

func (r *running) rampingArrivals() {
	r.arrivals(func(elapsed time.Duration) float64 { return r.at(elapsed, r.StartRate) })
}

// arrivals adds up a rate, in iterations a timeUnit, and begins an iteration
// for each whole one, the first at once.
func (r *running) arrivals(rate func(time.Duration) float64) {
	idle := make(chan *vu, len(r.vus))
	count := make(map[*vu]int, len(r.vus)) // iterations; a VU's entry belongs to who has it
	var mu sync.Mutex
	for _, v := range r.vus {
		idle <- v
	}
	due, begun, last := 1.0, 0, time.Duration(0)
	for last < r.length() { // to the end, even if this process was not run for a while
		now := min(time.Since(r.started), r.length())
		for ; last < now; last += time.Millisecond {
			due += rate(last) * float64(time.Millisecond) / float64(r.TimeUnit)
		}
		for ; begun+1 <= int(due+1e-9); begun++ {
			select {
			case v := <-idle:
				r.wg.Go(func() {
					mu.Lock()
					n := count[v]
					count[v]++
					mu.Unlock()
					r.iterate(r.ctx, v, n)
					idle <- v
				})
			default:
				r.drop(1)
			}
		}
		if !wait(r.ctx, time.Millisecond) {
			return
		}
	}
}
