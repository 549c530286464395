package bench

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// pair is what one line of the table shows: a variant in both models.
type pair struct {
	variant      string
	race, closed *Row
}

// pairs joins rows by variant, in order of appearance.
func pairs(rows []Row) []pair {
	var list []pair
	at := make(map[string]int)
	for i := range rows {
		row := &rows[i]
		n, known := at[row.Variant]
		if !known {
			n = len(list)
			at[row.Variant] = n
			list = append(list, pair{variant: row.Variant})
		}
		if row.Model == ModelRace {
			list[n].race = row
		} else {
			list[n].closed = row
		}
	}
	return list
}

// measured is the row if it is there and holds a measurement.
func measured(row *Row) bool { return row != nil && row.Skipped == nil }

// skipped is why neither model was measured, empty when one was.
func (p pair) skipped() string {
	for _, row := range []*Row{p.race, p.closed} {
		switch {
		case measured(row):
			return ""
		case row != nil:
			return *row.Skipped
		}
	}
	return ""
}

// WriteTable prints one line a variant, both models joined: speed from the
// closed model, units from the race, lost updates and settled of both.
func WriteTable(w io.Writer, rows []Row) error {
	lines := [][]string{
		{"", "accepted", "p50", "p95", "p99", "lock wait", "units", "", "", "", "lost", "persisted", "", ""},
		{"variant", "per s", "ms", "ms", "ms", "p99 ms", "sold", "of", "oversold", "unsold", "updates", "in SQL", "rejected", "settled"},
	}
	notes := make(map[int]string) // line -> what stands there instead of figures
	for _, p := range pairs(rows) {
		if why := p.skipped(); why != "" {
			notes[len(lines)] = "skipped: " + why
			lines = append(lines, []string{p.variant})
			continue
		}
		lines = append(lines, p.cells())
	}
	return writeColumns(w, lines, notes)
}

func (p pair) cells() []string {
	cells := []string{p.variant}
	if measured(p.closed) {
		c := p.closed
		cells = append(cells, Thousands(int64(c.AcceptedPerS+0.5)), fixed(c.P50Ms), fixed(c.P95Ms), fixed(c.P99Ms), optional(c.LockWaitP99Ms))
	} else {
		cells = append(cells, "", "", "", "", "")
	}
	var lost int64
	settled := true
	for _, row := range []*Row{p.race, p.closed} {
		if measured(row) {
			lost += row.LostUpdates
			settled = settled && row.Settled
		}
	}
	if measured(p.race) {
		r := p.race
		cells = append(cells, Thousands(r.AuditAccepted), Thousands(r.Stock), oversold(r), Thousands(r.Unsold),
			Thousands(lost), Thousands(r.Persisted), Thousands(r.Rejected))
	} else {
		cells = append(cells, "", "", "", "", Thousands(lost), "", "")
	}
	if settled {
		return append(cells, "yes")
	}
	return append(cells, "NO")
}

func oversold(r *Row) string {
	if r.Oversold == 0 {
		return "0"
	}
	return fmt.Sprintf("%s (%.1f %%)", Thousands(r.Oversold), 100*r.OversellRate)
}

// writeColumns aligns the first column left, the others right, without blanks
// at a line's end.
func writeColumns(w io.Writer, lines [][]string, notes map[int]string) error {
	var widths []int
	for _, line := range lines {
		for i, cell := range line {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var text strings.Builder
	for n, line := range lines {
		var b strings.Builder
		for i, cell := range line {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			switch {
			case i == 0 && notes[n] != "":
				b.WriteString(cell + pad + "  " + notes[n])
			case i == 0:
				b.WriteString(cell + pad)
			default:
				b.WriteString("  " + pad + cell)
			}
		}
		text.WriteString(strings.TrimRight(b.String(), " ") + "\n")
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// fixed shows milliseconds: two decimals below 10, one above.
func fixed(ms float64) string {
	if ms < 10 {
		return strconv.FormatFloat(ms, 'f', 2, 64)
	}
	return strconv.FormatFloat(ms, 'f', 1, 64)
}

func optional(ms *float64) string {
	if ms == nil {
		return "-"
	}
	return fixed(*ms)
}

// Thousands writes n with a comma every three digits.
func Thousands(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return sign + b.String()
}
