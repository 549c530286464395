//go:build unix

package e2e

import (
	"fmt"
	"testing"
	"time"

	"flashsale/internal/bench"
)

const (
	raceRounds = 20
	raceUsers  = 300
	raceUnits  = 100
)

// TestRaces sells the same stock over and over to three times as many buyers,
// whose connections lead to two APIs in turn: a lock that holds within one
// process alone would oversell.
func TestRaces(t *testing.T) {
	in := install(t, own{})
	first, second := in.api(t), in.api(t)
	in.syncer(t)
	b, err := bench.New(bench.Options{
		URL: "http://" + newGate(t, first.addr, second.addr).addr(), AdminToken: adminToken,
		Seed: 1, Patience: 30 * time.Second, AuditWait: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, variant := range []string{"none", "setnx", "watchdog", "atomic"} {
		t.Run(variant, func(t *testing.T) {
			for round := range raceRounds {
				race := bench.Race{Variant: variant, SaleID: fmt.Sprintf("race-%s-%d", variant, round), Users: raceUsers, Stock: raceUnits}
				row, err := b.Race(t.Context(), race)
				if err != nil {
					t.Fatal(err)
				}
				judge(t, in, race, row)
			}
		})
	}
}

func judge(t *testing.T, in *installation, race bench.Race, row bench.Row) {
	t.Helper()
	for _, fault := range bench.Faults(row) {
		t.Errorf("%s: %s", race.SaleID, fault)
	}
	rows := in.rows(t, race.SaleID)
	buyers, persisted := map[string]bool{}, int64(0)
	for _, r := range rows {
		buyers[r.user] = true
		if r.status == "persisted" {
			persisted++
		}
	}
	ok := row.Settled && row.Duplicates == 0 && row.Deep != nil && row.Deep.Same() && row.Deep.Compared == row.Accepted &&
		int64(len(rows)) == row.Accepted && int64(len(buyers)) == row.Accepted && persisted == row.Persisted && in.left(t, race.SaleID) == raceUnits-persisted
	if race.Variant == "none" {
		ok = ok && row.Oversold > 0 && row.Rejected == row.Oversold && row.Persisted == raceUnits
	} else {
		ok = ok && row.Accepted == raceUnits && row.Persisted == raceUnits && row.Oversold == 0 && row.Unsold == 0
	}
	if !ok {
		t.Errorf("%s: %d rows of %d buyers, %d persisted, row %+v, deep %+v", race.SaleID, len(rows), len(buyers), persisted, row, row.Deep)
	}
}
