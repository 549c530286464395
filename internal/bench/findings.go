package bench

import (
	"fmt"
	"strings"
)

// Findings are the three lines below the table: what selling without a lock
// did, what the locked and the atomic variants did, and what their safety costs. Every figure
// and every comparison in them is computed from the rows.
func Findings(rows []Row) [3]string {
	list := pairs(rows)
	return [3]string{withoutLock(list), safety(list), speed(list)}
}

func withoutLock(list []pair) string {
	for _, p := range list {
		if p.variant != NoLock || !measured(p.race) {
			continue
		}
		r := p.race
		if r.Oversold == 0 {
			return fmt.Sprintf("No lock: %s of %s units sold, none oversold: this race was too gentle to show anything.",
				Thousands(r.AuditAccepted), Thousands(r.Stock))
		}
		text := fmt.Sprintf("No lock: %s sold of %s units, %s oversold: buyers read the same stock, and each wrote it back less one. SQL rejected %s",
			Thousands(r.AuditAccepted), Thousands(r.Stock), Thousands(r.Oversold), which(r.Rejected, r.Oversold))
		if measured(p.closed) && p.closed.LostUpdates > 0 {
			text += fmt.Sprintf("; with plenty of stock %s of %s updates were lost",
				Thousands(p.closed.LostUpdates), Thousands(p.closed.AuditAccepted))
		}
		return text + "."
	}
	return "No lock: not measured."
}

func which(rejected, oversold int64) string {
	if rejected == oversold {
		return "exactly those"
	}
	return Thousands(rejected)
}

func safety(list []pair) string {
	var parts, exact, wrong, lucky []string
	for _, p := range list {
		switch {
		case p.variant == NoLock || (!measured(p.race) && !measured(p.closed)):
		case p.faulty():
			wrong = append(wrong, p.variant)
		case p.broken() && p.slipped():
			parts = append(parts, p.variant+": broken on purpose, and it showed: it oversold or lost updates.")
		case p.broken():
			lucky = append(lucky, p.variant)
		case measured(p.race) && p.race.Unsold > 0:
			parts = append(parts, fmt.Sprintf("%s: right, but %s of %s units unsold, as users gave up waiting.", p.variant, Thousands(p.race.Unsold), Thousands(p.race.Stock)))
		default:
			exact = append(exact, p.variant)
		}
	}
	if len(exact) > 0 {
		parts = append([]string{and(exact) + ": exact. Nobody gets in between reading the stock and writing it; each accepted purchase is in SQL once."}, parts...)
	}
	if len(wrong) > 0 {
		parts = append(parts, and(wrong)+": broke the promise, see the faults.")
	}
	if len(lucky) > 0 {
		parts = append(parts, and(lucky)+": broken on purpose, exact only because nobody crashed or paused in this run.")
	}
	if len(parts) == 0 {
		return "No safe variant was measured."
	}
	return strings.Join(parts, " ")
}

func (p pair) faulty() bool {
	for _, row := range []*Row{p.race, p.closed} {
		if row != nil && len(Faults(*row)) > 0 {
			return true
		}
	}
	return false
}

func (p pair) broken() bool {
	return p.race != nil && p.race.Broken || p.closed != nil && p.closed.Broken
}

// slipped reports whether a lock let two in at once.
func (p pair) slipped() bool {
	for _, row := range []*Row{p.race, p.closed} {
		if row != nil && (row.Oversold > 0 || row.LostUpdates > 0 || row.Undersold > 0 || row.Rejected > 0) {
			return true
		}
	}
	return false
}

// speed compares what was measured in the closed model: the fastest safe
// variant with each other one.
func speed(list []pair) string {
	var safe []pair
	var none *Row
	for _, p := range list {
		switch {
		case !measured(p.closed) || p.closed.AcceptedPerS == 0:
		case p.variant == NoLock:
			none = p.closed
		case p.broken(): // no price of safety
		default:
			safe = append(safe, p)
		}
	}
	if len(safe) == 0 {
		return "Speed: no safe variant was measured."
	}
	best := safe[0]
	for _, p := range safe[1:] {
		if p.closed.AcceptedPerS > best.closed.AcceptedPerS {
			best = p
		}
	}
	text := fmt.Sprintf("Speed: %s sells most, %s a second", best.variant, Thousands(int64(best.closed.AcceptedPerS+0.5)))
	if none != nil {
		text += fmt.Sprintf(" (%s no lock)", times(best.closed, none))
	}
	if best.closed.LockWaitP99Ms == nil {
		text += ", without a lock"
	}
	var locked []string
	for _, p := range safe {
		ratio := p.variant + " " + times(p.closed, best.closed)
		switch wait := p.closed.LockWaitP99Ms; {
		case p.variant == best.variant:
		case wait == nil:
			text += "; " + ratio + " of that"
		default:
			locked = append(locked, fmt.Sprintf("%s (lock wait P99 %s ms)", ratio, fixed(*wait)))
		}
	}
	if len(locked) > 0 {
		text += "; of that " + and(locked)
	}
	return text + "."
}

func times(a, b *Row) string { return fmt.Sprintf("%.2fx", a.AcceptedPerS/b.AcceptedPerS) }

func and(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}
