package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"flashsale/internal/bench"
)

// screen is where the demo talks to people: lines to out, progress to err. On a
// terminal the progress is one line that is written over; elsewhere it is one
// plain line for each measurement that is done.
type screen struct {
	out, err io.Writer
	terminal bool
	n, of    int
	shown    bool // a progress line stands there

	bar      bool // with how far everything is
	what     string
	expected time.Duration // what a step takes, about
}

func newScreen(out, err io.Writer) *screen {
	return &screen{out: out, err: err, terminal: isTerminal(err)}
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func (s *screen) say(format string, values ...any) {
	s.clear()
	fmt.Fprintf(s.out, format+"\n", values...)
}

// step says which of how many measurements comes next.
func (s *screen) step(n, of int) { s.n, s.of = n, of }

func (s *screen) progress(p bench.Progress) {
	if !s.terminal {
		return
	}
	if s.bar {
		fmt.Fprintf(s.err, "\r\x1b[K%s %d/%d %s: %s %.1f s, %s accepted", s.drawBar(p), s.n, s.of, s.what, p.Phase, p.Elapsed.Seconds(), bench.Thousands(p.Accepted))
	} else {
		fmt.Fprintf(s.err, "\r\x1b[K[%d/%d] %s %s: %s, %.1f s, %s accepted of %s attempts",
			s.n, s.of, p.Variant, p.Model, p.Phase, p.Elapsed.Seconds(), bench.Thousands(p.Accepted), bench.Thousands(p.Attempts))
	}
	s.shown = true
}

// drawBar counts steps as equally long, and of the one under way what it takes.
func (s *screen) drawBar(p bench.Progress) string {
	const width = 20
	share := 0.0
	if s.expected > 0 && p.Phase != bench.PhaseSetup {
		share = min(1, p.Elapsed.Seconds()/s.expected.Seconds())
	}
	done := int(width * (float64(s.n-1) + share) / float64(s.of))
	return "[" + strings.Repeat("#", done) + strings.Repeat(".", width-done) + "]"
}

func (s *screen) finished(row bench.Row) {
	if s.terminal {
		return // the table will tell
	}
	var took time.Duration
	if row.AttemptsPerS > 0 {
		took = time.Duration(float64(row.Attempts) / row.AttemptsPerS * float64(time.Second))
	}
	what := s.what
	if what == "" {
		what = fmt.Sprintf("%s %s", row.Variant, row.Model)
	}
	if row.Skipped != nil {
		fmt.Fprintf(s.err, "[%d/%d] %s: skipped, %s\n", s.n, s.of, what, *row.Skipped)
		return
	}
	fmt.Fprintf(s.err, "[%d/%d] %s: %.1f s, %s accepted of %s attempts\n",
		s.n, s.of, what, took.Seconds(), bench.Thousands(row.Accepted), bench.Thousands(row.Attempts))
}

// clear takes the progress line away.
func (s *screen) clear() {
	if s.shown {
		fmt.Fprint(s.err, "\r\x1b[K")
		s.shown = false
	}
}
