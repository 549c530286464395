package locktest

import (
	"time"

	"github.com/anishathalye/porcupine"
)

// Cycle is what one contender saw of one lease, in ns since 1970 by the clock of
// the machine, which its processes share.
type Cycle struct {
	Asked, Granted      int64 // Acquire was called, and returned
	Releasing, Released int64 // Release was called, and returned
	Lost, Unsure        bool  // Release said ErrLost, or could not tell; or its holder was killed
	Shared              bool  // a reader's lease, which may be valid at a time with other readers'
	Fence               uint64
}

// Exclusive says whether a lock of which at most one lease is valid at a time
// can have granted these, whatever order they are listed in: porcupine looks for
// an order of grants and ends that agrees with what every contender saw when. A
// lost lease may have ended at any time before its holder was told. fenced:
// fences grow from grant to grant, but for readers', who have none. undecided: it took too long to tell.
func Exclusive(history []Cycle, fenced bool) (exclusive, undecided bool) {
	if together(history) {
		return false, false
	}
	var operations []porcupine.Operation
	for lease, c := range history {
		if c.Shared {
			continue
		}
		ended, end := c.Releasing, c.Released
		if c.Lost {
			ended = c.Granted + 1
		}
		if c.Unsure {
			end = 1<<63 - 1
		}
		operations = append(operations,
			porcupine.Operation{ClientId: lease, Input: grant{lease + 1, c.Fence}, Call: c.Asked, Return: c.Granted},
			porcupine.Operation{ClientId: lease, Input: ending{lease + 1}, Call: ended, Return: end})
	}
	model := porcupine.Model{
		Init: func() any { return mutex{} },
		Step: func(state, input, _ any) (bool, any) {
			m := state.(mutex)
			switch step := input.(type) {
			case grant:
				return m.holder == 0 && (!fenced || step.fence > m.fence), mutex{step.lease, step.fence}
			case ending:
				return m.holder == step.lease, mutex{0, m.fence}
			}
			return false, m
		},
	}
	result := porcupine.CheckOperationsTimeout(model, operations, 30*time.Second)
	return result == porcupine.Ok, result == porcupine.Unknown
}

// together says whether a reader's lease was valid beside another's: held for
// certain at the same instant. An order of all readers would take porcupine
// longer to find than there is time.
func together(history []Cycle) bool {
	for _, reader := range history {
		for _, writer := range history {
			if reader.Shared && !writer.Shared && !reader.Lost && !writer.Lost &&
				reader.Granted < writer.Releasing && writer.Granted < reader.Releasing {
				return true
			}
		}
	}
	return false
}

// mutex is the model: who holds it, 0 for nobody, and the last fence.
type mutex struct {
	holder int
	fence  uint64
}

type grant struct {
	lease int
	fence uint64
}

type ending struct{ lease int }
