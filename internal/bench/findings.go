package bench

import (
	"fmt"
	"strings"
)

// Findings are the three lines below the table: what selling without a lock
// did, what the safe variants did, and what their safety costs. Every figure
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
			return fmt.Sprintf("No lock: sold %s of %s units and did not oversell; so this race was too gentle to show anything.",
				Thousands(r.AuditAccepted), Thousands(r.Stock))
		}
		text := fmt.Sprintf("No lock: %s of %s units sold, %s too many: buyers read the same remaining stock and each wrote it back less their own; SQL refused %s afterwards",
			Thousands(r.AuditAccepted), Thousands(r.Stock), Thousands(r.Oversold), which(r.Rejected, r.Oversold))
		if measured(p.closed) && p.closed.LostUpdates > 0 {
			text += fmt.Sprintf("; with plenty of stock %s of %s deductions were overwritten",
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
	var exact, wrong, partly []string
	for _, p := range list {
		switch {
		case p.variant == NoLock || (!measured(p.race) && !measured(p.closed)):
		case p.faulty():
			wrong = append(wrong, p.variant)
		case measured(p.race) && p.race.Unsold > 0:
			partly = append(partly, fmt.Sprintf("%s left %s of %s unsold since its users gave up waiting", p.variant, Thousands(p.race.Unsold), Thousands(p.race.Stock)))
		default:
			exact = append(exact, p.variant)
		}
	}
	var parts []string
	if len(exact) > 0 {
		parts = append(parts, and(exact)+": every unit sold once, each accepted purchase in SQL exactly once, since reading, deciding and writing is one step that no other buyer gets into")
	}
	parts = append(parts, partly...)
	if len(wrong) > 0 {
		parts = append(parts, and(wrong)+": broke the promise, see below")
	}
	if len(parts) == 0 {
		return "No safe variant was measured."
	}
	return strings.Join(parts, "; ") + "."
}

func (p pair) faulty() bool {
	for _, row := range []*Row{p.race, p.closed} {
		if row != nil && len(Faults(*row)) > 0 {
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
	text := fmt.Sprintf("Speed: %s sold fastest, %s a second", best.variant, Thousands(int64(best.closed.AcceptedPerS+0.5)))
	if best.closed.LockWaitP99Ms == nil {
		text += " (one script call, nobody waits for a lock)"
	}
	if none != nil {
		text += fmt.Sprintf(", %s no lock's", times(best.closed, none))
	}
	for _, p := range safe {
		if p.variant == best.variant {
			continue
		}
		text += fmt.Sprintf("; %s %s of that", p.variant, times(p.closed, best.closed))
		if wait := p.closed.LockWaitP99Ms; wait != nil {
			text += fmt.Sprintf(" (P99 wait for the lock %s ms)", fixed(*wait))
		}
	}
	if len(safe) > 1 {
		text += "; a lock costs several round trips for each purchase, one after the other"
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
