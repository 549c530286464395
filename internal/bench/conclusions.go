package bench

import (
	"fmt"
	"strings"
)

// Conclusions are sentences about a report, with every figure and comparison
// computed from it.
func (r *Report) Conclusions() []string {
	var lines []string
	if line := r.sayOverselling(); line != "" {
		lines = append(lines, line)
	}
	loads := Loads(r.Summaries)
	for _, load := range loads {
		if load.Model() == ModelOpen {
			lines = append(lines, sayKeptUp(load, r.under(load))...)
		} else if line := sayFastest(load, r.under(load)); line != "" {
			lines = append(lines, line)
		}
	}
	return append(lines, r.saySaturated()...)
}

// sayOverselling joins races and loads: in either a unit can be sold twice.
func (r *Report) sayOverselling() string {
	var guarded, slipped, lucky []string
	broken := map[string]bool{}
	none, lost := "", 0.0
	bad := map[string]bool{}
	seen := map[string]bool{}
	for _, s := range r.Summaries {
		if s.Skipped != nil {
			continue
		}
		wrong := s.Oversold.Max > 0 || s.LostUpdates.Max > 0 || s.Undersold.Max > 0
		switch {
		case s.Variant != NoLock:
			bad[s.Variant] = bad[s.Variant] || wrong
			broken[s.Variant] = s.Broken
			if !seen[s.Variant] {
				seen[s.Variant] = true
				guarded = append(guarded, s.Variant)
			}
		case s.Model == ModelRace:
			none = fmt.Sprintf("Without a lock %s of what was sold in the race was oversold. ", s.OversellRate.percent())
		default:
			lost = max(lost, s.LostShare.Max)
		}
	}
	if lost > 0 {
		none += fmt.Sprintf("Under load no lock overwrote up to %s of its own sales: lost updates. ", percent(lost))
	}
	var exact []string
	for _, variant := range guarded {
		switch {
		case bad[variant]:
			slipped = append(slipped, variant)
		case broken[variant]:
			lucky = append(lucky, variant)
		default:
			exact = append(exact, variant)
		}
	}
	text := none
	if len(exact) > 0 {
		text += and(exact) + ": nothing oversold, lost or gone in any run. "
	}
	if len(slipped) > 0 {
		text += and(slipped) + ": units were oversold, lost or gone. "
	}
	if len(lucky) > 0 {
		text += and(lucky) + ": broken on purpose, exact only because nobody crashed or paused. "
	}
	return strings.TrimSpace(text)
}

func sayFastest(load Load, summaries []Summary) string {
	var best *Summary
	for i, s := range summaries {
		if s.Skipped == nil && !s.Broken && s.Variant != NoLock && s.AcceptedPerS.Median > 0 && (best == nil || s.AcceptedPerS.Median > best.AcceptedPerS.Median) {
			best = &summaries[i]
		}
	}
	if best == nil {
		return ""
	}
	text := fmt.Sprintf("At %s the fastest variant that is safe was %s with %s accepted/s", load, best.Variant, best.AcceptedPerS.text(whole))
	if best.OfNoLock != nil {
		text += fmt.Sprintf(", %s times no lock", best.OfNoLock.text(ratio))
	}
	return text + "."
}

// sayKeptUp says who sold at the rate at which buyers came. That is no question
// of who is fastest: nobody sells more than is asked for.
func sayKeptUp(load Load, summaries []Summary) (lines []string) {
	const nearly = 0.95 // a Poisson schedule and the last answers have some play
	var kept []string
	for _, s := range summaries {
		if s.Skipped != nil {
			continue
		}
		lost := s.Dropped.Max > 0 || s.GaveUp.Max > 0
		behind := s.AcceptedPerS.Median < nearly*load.Rate && s.SoldOutPerS == nil
		switch {
		case lost:
			lines = append(lines, fmt.Sprintf("%s did not keep up with %s: %s a second; dropped: %s of the buyers, gave up: %s, who are in no percentile; its latencies are those of the others.",
				s.Variant, load, s.AcceptedPerS.text(whole), s.dropped(), s.GaveUp.text(whole)))
		case behind:
			lines = append(lines, fmt.Sprintf("%s fell behind %s: it sold %s a second, and was still answering after the last buyer had come.", s.Variant, load, s.AcceptedPerS.text(whole)))
		default:
			kept = append(kept, fmt.Sprintf("%s (P99 %s ms)", s.Variant, s.AcceptedLatency.P99.text(fixed)))
		}
	}
	if len(kept) > 0 {
		lines = append([]string{fmt.Sprintf("At %s kept up: %s.", load, strings.Join(kept, ", "))}, lines...)
	}
	return lines
}

// saySaturated warns that the generator and what it measures shared all there was.
func (r *Report) saySaturated() []string {
	const full = 0.9
	var names []string
	seen := map[string]bool{}
	for _, s := range r.Summaries {
		if s.Model != ModelRace && s.CPUShare != nil && s.CPUShare.Median > full && !seen[s.Variant] {
			seen[s.Variant] = true
			names = append(names, s.Variant)
		}
	}
	switch {
	case names == nil:
		return nil
	case r.InProcess:
		return []string{fmt.Sprintf("%s: this process used more than %.0f %% of all processors, so the figures are what this machine can do with the load generator on it.", and(names), 100*full)}
	default:
		return []string{fmt.Sprintf("%s: the generator alone used more than %.0f %% of all processors of its machine, so it may be what was measured.", and(names), 100*full)}
	}
}
