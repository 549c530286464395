package bench

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// WriteMarkdown writes the report for people. Charts are links to files beside
// it, in pairs of title and file name.
func (r *Report) WriteMarkdown(w io.Writer, charts [][2]string) error {
	var b strings.Builder
	say := func(format string, values ...any) { fmt.Fprintf(&b, format+"\n", values...) }

	say("# flashsale bench\n")
	r.sayPartial(say)
	say("%s\n", r.introduction())
	for _, load := range Loads(r.Summaries) {
		say("## %s\n", r.heading(load))
		writeMarkdownTable(&b, loadTable(r.under(load)))
		say("")
		writeMarkdownTable(&b, answersTable(r.under(load)))
		say("")
		if lines := soldOutTable(r.under(load)); lines != nil {
			say("Sold out under load; the answers that said so, apart from those above:\n")
			writeMarkdownTable(&b, lines)
			say("")
		}
	}
	if races := r.races(); len(races) > 0 {
		say("## Race: %s users for %s units, one each, all at once\n", Thousands(int64(r.Parameters.RaceUsers)), Thousands(r.Parameters.RaceStock))
		writeMarkdownTable(&b, raceTable(races))
		say("")
		writeMarkdownTable(&b, raceSpeedTable(races))
		say("")
	}
	say("## What it says\n")
	for _, line := range r.Conclusions() {
		say("- %s", line)
	}
	for _, fault := range r.Faults {
		say("- **Fault**: %s", fault)
	}
	if len(charts) > 0 {
		say("\n## Charts\n")
		for _, chart := range charts {
			say("![%s](%s)\n", chart[0], chart[1])
		}
	} else {
		say("")
	}
	say("## What the figures belong to\n")
	for _, line := range r.footer() {
		say("- %s", line)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Report) sayPartial(say func(string, ...any)) {
	if r.Partial != nil {
		say("**PARTIAL: %d of %d measurements were made, then: %s.**\n", r.Done, r.Planned, *r.Partial)
	}
}

func (r *Report) introduction() string {
	text := fmt.Sprintf("Medians of %d interleaved runs, the range in brackets. ", r.Parameters.Runs)
	if r.Parameters.Runs == 1 {
		text = "One run: no range, so differences of some percent say nothing. "
	}
	text += "*accepted/s* is goodput: sold units, no other answers. "
	if r.Parameters.Model == ModelOpen {
		text += "Open model: buyers arrive on a schedule, whatever the API does; latency counts from the instant a buyer was due, and buyers dropped because too many were in flight are in no percentile. "
	} else {
		text += "Closed model: a user buys again once answered, so a slow API is asked less; latency is from the first request of a purchase to its answer, with repetitions after a 423. "
	}
	text += "*of none* is accepted/s to that of no lock in the same run: the median of these ratios, not the ratio of the medians. " +
		fmt.Sprintf("P99.9 is left out unless at least %d purchases of every run were slower.", fewest)
	if names := r.standIns(); names != "" {
		text += " Stand-ins for " + names + ": compare variants with each other, not with real servers."
	}
	return text
}

func (r *Report) heading(load Load) string {
	d := seconds(r.Parameters.DurationS)
	if load.Users > 0 {
		return fmt.Sprintf("Closed model, %s, %v", load, d)
	}
	return fmt.Sprintf("Open model, %s (%s), %v", load, r.Parameters.Arrivals, d)
}

func loadTable(summaries []Summary) [][]string {
	lines := [][]string{{"variant", "accepted/s", "of none", "P50 ms", "P95 ms", "P99 ms", "P99.9 ms", "lock wait P99 ms"}}
	for _, s := range summaries {
		if s.Skipped != nil {
			lines = append(lines, []string{s.Variant, "skipped: " + *s.Skipped})
			continue
		}
		l := s.AcceptedLatency
		lines = append(lines, []string{s.name(), s.AcceptedPerS.text(whole), s.OfNoLock.text(ratio),
			l.P50.text(fixed), l.P95.text(fixed), l.P99.text(fixed), l.P999.text(fixed), s.LockWaitP99.text(fixed)})
	}
	return lines
}

// answersTable is what stands beside the percentiles: who isn't in them, and
// whether what was accepted was right.
func answersTable(summaries []Summary) [][]string {
	open := summaries[0].Model == ModelOpen
	lines := [][]string{{"variant", "attempts/s"}}
	if open {
		lines[0] = append(lines[0], "due", "dropped", "generator late P99 ms")
	}
	lines[0] = append(lines[0], "answered 423", "gave up", "failed", "oversold", "lost updates", "settled", "CPU")
	for _, s := range summaries {
		if s.Skipped != nil {
			continue
		}
		line := []string{s.name(), s.AttemptsPerS.text(whole)}
		if open {
			line = append(line, s.Arrivals.text(whole), s.dropped(), s.LagP99.text(fixed))
		}
		lines = append(lines, append(line, s.Busy.text(whole), s.GaveUp.text(whole), s.Failed.text(whole),
			s.Oversold.text(whole), s.LostUpdates.text(whole), yes(s.Settled), s.CPUShare.percent()))
	}
	return lines
}

// name says so when the lock is broken on purpose.
func (s Summary) name() string {
	if s.Broken {
		return s.Variant + " (broken on purpose)"
	}
	return s.Variant
}

func (s Summary) dropped() string {
	if s.Dropped.Max == 0 {
		return "0"
	}
	return fmt.Sprintf("%s = %s", s.Dropped.text(whole), s.DroppedShare.percent())
}

// soldOutTable is nil when no load sold out.
func soldOutTable(summaries []Summary) [][]string {
	lines := [][]string{{"variant", "sold of", "oversell", "sold-out answers", "sold-out answers/s", "P50 ms", "P99 ms"}}
	for _, s := range summaries {
		if s.SoldOutPerS == nil {
			continue
		}
		lines = append(lines, []string{s.name(), s.Accepted.text(whole) + " of " + Thousands(s.Stock), s.OversellRate.percent(), s.SoldOut.text(whole),
			s.SoldOutPerS.text(whole), s.SoldOutLatency.P50.text(fixed), s.SoldOutLatency.P99.text(fixed)})
	}
	if len(lines) == 1 {
		return nil
	}
	return lines
}

func raceTable(summaries []Summary) [][]string {
	lines := [][]string{{"variant", "sold", "oversold", "oversell", "unsold", "undersold", "rejected by SQL", "settled"}}
	for _, s := range summaries {
		if s.Skipped != nil {
			lines = append(lines, []string{s.Variant, "skipped: " + *s.Skipped})
			continue
		}
		lines = append(lines, []string{s.name(), s.Accepted.text(whole), s.Oversold.text(whole), s.OversellRate.percent(), s.Unsold.text(whole),
			s.Undersold.text(whole), s.Rejected.text(whole), yes(s.Settled)})
	}
	return lines
}

// raceSpeedTable has accepted and sold-out answers apart.
func raceSpeedTable(summaries []Summary) [][]string {
	lines := [][]string{{"variant", "accepted/s", "P50 ms", "P99 ms", "sold-out answers", "sold-out answers/s", "P50 ms", "P99 ms"}}
	for _, s := range summaries {
		if s.Skipped == nil {
			lines = append(lines, []string{s.name(), s.AcceptedPerS.text(whole), s.AcceptedLatency.P50.text(fixed), s.AcceptedLatency.P99.text(fixed),
				s.SoldOut.text(whole), s.SoldOutPerS.text(whole), s.SoldOutLatency.P50.text(fixed), s.SoldOutLatency.P99.text(fixed)})
		}
	}
	return lines
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return "**NO**"
}

// writeMarkdownTable pads the cells, so that the text can be read as it is.
func writeMarkdownTable(b *strings.Builder, lines [][]string) {
	widths := make([]int, len(lines[0]))
	for _, line := range lines {
		for i, cell := range line {
			if i == 1 && len(line) == 2 && len(widths) > 2 {
				continue // a remark may stick out
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for n, line := range lines {
		b.WriteString("|")
		for i, width := range widths {
			cell := ""
			if i < len(line) {
				cell = line[i]
			}
			pad := strings.Repeat(" ", max(0, width-utf8.RuneCountInString(cell)))
			if i == 0 {
				b.WriteString(" " + cell + pad + " |")
			} else {
				b.WriteString(" " + pad + cell + " |")
			}
		}
		b.WriteString("\n")
		if n == 0 {
			b.WriteString("|")
			for i, width := range widths {
				if i == 0 {
					b.WriteString(strings.Repeat("-", width+2) + "|")
				} else {
					b.WriteString(strings.Repeat("-", width+1) + ":|")
				}
			}
			b.WriteString("\n")
		}
	}
}
