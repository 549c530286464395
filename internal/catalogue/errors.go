package catalogue

import (
	"errors"
	"fmt"
	"strings"
)

// Bounds of a file.
const (
	MaxBytes    = 8 << 20
	MaxSales    = 10_000
	maxProblems = 100 // reported; the rest is counted
	maxShown    = 60  // bytes of a value that are repeated in a problem
)

// ErrTooLarge is a file beyond MaxBytes.
var ErrTooLarge = errors.New("catalogue: file too large")

// Problem is one thing that is wrong.
type Problem struct {
	Line    int    `json:"line"`   // of the file, the header is line 1; 0: the file as a whole
	Column  string `json:"column"` // name of the column; empty: the line as a whole
	Value   string `json:"value"`  // what stands there, shortened
	Reason  string `json:"reason"`
	Allowed string `json:"allowed"`
}

func (p Problem) String() string {
	var b strings.Builder
	if p.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", p.Line)
	}
	if p.Column != "" {
		fmt.Fprintf(&b, "%s %q ", p.Column, p.Value)
	}
	b.WriteString(p.Reason)
	if p.Allowed != "" {
		b.WriteString("; allowed: " + p.Allowed)
	}
	return b.String()
}

// ProblemsError says that a catalogue was refused, and everything why, in the
// order of the lines.
type ProblemsError struct {
	Problems []Problem
	More     int // problems beyond those listed
}

func (e *ProblemsError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "catalogue: nothing loaded, %d problems", len(e.Problems)+e.More)
	if len(e.Problems)+e.More == 1 {
		b.Reset()
		b.WriteString("catalogue: nothing loaded, 1 problem")
	}
	for _, p := range e.Problems {
		b.WriteString("\n  " + p.String())
	}
	if e.More > 0 {
		fmt.Fprintf(&b, "\n  and %d more", e.More)
	}
	return b.String()
}

func (e *ProblemsError) add(p Problem) {
	if len(e.Problems) == maxProblems {
		e.More++
		return
	}
	if len(p.Value) > maxShown {
		p.Value = strings.ToValidUTF8(p.Value[:maxShown], "") + "..."
	}
	e.Problems = append(e.Problems, p)
}

func (e *ProblemsError) err() error {
	if len(e.Problems) == 0 {
		return nil
	}
	return e
}
