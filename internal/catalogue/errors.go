package catalogue

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
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
	Value   string `json:"value"`  // what stands there, shortened; bytes that aren't UTF-8 included, which String escapes
	Reason  string `json:"reason"`
	Allowed string `json:"allowed"`
}

func (p Problem) String() string {
	var b strings.Builder
	if p.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", p.Line)
	}
	if p.Column != "" {
		b.WriteString(p.Column + " ")
	}
	if p.Column != "" || p.Value != "" {
		fmt.Fprintf(&b, "%q ", p.Value)
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
		p.Value = shorten(p.Value)
	}
	e.Problems = append(e.Problems, p)
}

// addFirst puts the problem first that decides the file's fate whatever else is
// wrong.
func (e *ProblemsError) addFirst(p Problem) {
	if len(e.Problems) == maxProblems {
		e.Problems = e.Problems[:maxProblems-1]
		e.More++
	}
	e.Problems = slices.Insert(e.Problems, 0, p)
}

// shorten cuts no character in two.
func shorten(value string) string {
	end := maxShown
	for end > maxShown-utf8.UTFMax && !utf8.RuneStart(value[end]) {
		end--
	}
	return value[:end] + "..."
}

func (e *ProblemsError) err() error {
	if len(e.Problems) == 0 {
		return nil
	}
	return e
}
