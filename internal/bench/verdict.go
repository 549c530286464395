package bench

import (
	"fmt"
	"slices"
	"strings"
)

// NoLock is the variant that is there to fail: it must oversell in a race, or
// the race was none.
const NoLock = "none"

// Faults says what about a measurement contradicts the promise of its variant,
// a sentence each; none means that the promise was kept. It is pure: whoever has
// the row comes to the same verdict.
func Faults(row Row) []string {
	if row.Skipped != nil {
		return nil
	}
	var faults []string
	fault := func(when bool, format string, values ...any) {
		if when {
			faults = append(faults, fmt.Sprintf("%s, %s: ", row.Variant, row.Model)+fmt.Sprintf(format, values...))
		}
	}

	// What holds for every variant: the ledger gets what was accepted, once.
	fault(row.Failed > 0, "%d requests failed: %s", row.Failed, strings.Join(row.Failures, "; "))
	fault(!row.Settled, "did not settle: %d accepted, %d persisted, %d rejected", row.AuditAccepted, row.Persisted, row.Rejected)
	fault(row.Duplicates > 0, "%d units are in the ledger more than once", row.Duplicates)
	fault(row.Failed == 0 && row.Accepted != row.AuditAccepted, "%d purchases were answered as accepted, %d are", row.Accepted, row.AuditAccepted)

	if d := row.Deep; d != nil && row.Settled {
		fault(!d.Same(), "purchase by purchase, SQL lacks %d, has %d that were never accepted, and differs in %d: %s",
			d.MissingInLedger.Count, d.UnknownToRedis.Count, d.Differing.Count,
			strings.Join(slices.Concat(d.MissingInLedger.Sample, d.UnknownToRedis.Sample, d.Differing.Sample), ", "))
	}

	if row.Variant == NoLock {
		fault(row.Model == ModelRace && row.Oversold == 0, "no lock was asked for and did not oversell: %d users, %d accepted of %d units",
			row.Users, row.Accepted, row.Stock)
		return faults
	}
	if row.Broken {
		return faults // whether it oversells is up to who crashes or pauses when
	}
	fault(row.Oversold > 0, "oversold: %d units were sold of %d", row.AuditAccepted, row.Stock)
	fault(row.LostUpdates > 0, "%d updates were lost", row.LostUpdates)
	fault(row.Undersold > 0, "%d units are gone and sold to nobody", row.Undersold)
	fault(row.Rejected > 0, "the ledger refused %d units that had been accepted", row.Rejected)
	fault(row.Settled && row.Rejected == 0 && row.Persisted != row.AuditAccepted, "%d units accepted, %d persisted", row.AuditAccepted, row.Persisted)
	return faults
}
