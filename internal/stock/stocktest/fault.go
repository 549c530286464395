package stocktest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

// Fault is what goes wrong at one step of a process.
type Fault string

// The ways in which a step can go.
const (
	Fine       Fault = ""
	Refused    Fault = "refused"          // nothing happened, and the caller is told so
	ReplyLost  Fault = "reply lost"       // it happened, and the caller sees an error
	DiesBefore Fault = "dies before step" // the process is gone, nothing happened
	DiesAfter  Fault = "dies after step"  // it happened, and the process is gone
)

// Faults are all that can go wrong.
var Faults = []Fault{Refused, ReplyLost, DiesBefore, DiesAfter}

var (
	errBroken = errors.New("broken")
	errDead   = errors.New("process is dead")
)

// FailAt returns a hook that lets one step fail, counted from 0, and the others
// pass. Fired is set when it has.
func FailAt(step int, fault Fault, fired *bool) func() Fault {
	return func() Fault {
		step--
		if step != -1 {
			return Fine
		}
		*fired = true
		return fault
	}
}

// EveryStep runs a scenario again and again, each time with a failure one step
// later, in every way of failing, until the scenario has no such step. It must
// have had atLeast so many.
func EveryStep(t *testing.T, atLeast int, scenario func(t *testing.T, step int, fault Fault) (fired bool)) {
	for _, fault := range Faults {
		t.Run(string(fault), func(t *testing.T) {
			for step := 0; ; step++ {
				fired := scenario(t, step, fault)
				if t.Failed() {
					t.Fatalf("%s at step %d", fault, step)
				}
				if !fired && step < atLeast {
					t.Fatalf("only %d steps were taken", step)
				}
				if !fired {
					return
				}
			}
		})
	}
}

// World is what several processes share. Its lock guards whatever is built
// around it.
type World struct {
	sync.Mutex
	changed chan struct{} // closed and replaced at every change
}

// Change wakes everyone who waits; the lock is held.
func (w *World) Change() {
	if w.changed != nil {
		close(w.changed)
	}
	w.changed = make(chan struct{})
}

// Changed is closed at the next change; the lock is held.
func (w *World) Changed() <-chan struct{} {
	if w.changed == nil {
		w.changed = make(chan struct{})
	}
	return w.changed
}

// Await waits until the condition, asked with the lock held, is true. It is
// meant for a synctest bubble, where patience costs no time.
func (w *World) Await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.NewTimer(2 * time.Hour)
	defer deadline.Stop()
	for {
		w.Lock()
		ok, changed := condition(), w.Changed()
		w.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-deadline.C:
			t.Errorf("still waiting after two hours: %s", what)
			return
		}
	}
}

// Process is one process's way to the World, until it dies.
type Process struct {
	World  *World
	Cancel context.CancelFunc
	Died   func() // called at its death with the lock held; may be nil
	dead   bool
}

// Dead reports whether the process has died; the lock is held.
func (p *Process) Dead() bool { return p.dead }

// Step runs apply with the lock held, or what the hook makes of it. Nothing that
// a dead process does has an effect, as after SIGKILL.
func (p *Process) Step(hook func() Fault, apply func() error) error {
	p.World.Lock()
	defer p.World.Unlock()
	if p.dead {
		return errDead
	}
	fault := hook()
	switch fault {
	case Refused:
		return errBroken
	case DiesBefore:
		return p.die()
	}
	err := apply()
	p.World.Change()
	switch fault {
	case ReplyLost:
		return errBroken
	case DiesAfter:
		return p.die()
	}
	return err
}

// Kill is SIGKILL between two steps.
func (p *Process) Kill() {
	p.World.Lock()
	defer p.World.Unlock()
	_ = p.die() // the error is for a step
}

func (p *Process) die() error {
	p.dead = true
	p.Cancel()
	if p.Died != nil {
		p.Died()
	}
	p.World.Change()
	return errDead
}
