package mysqllock

import (
	"testing"

	"flashsale/internal/lock"
	"flashsale/internal/lock/locktest"
)

func TestRowExcludesAcrossProcesses(t *testing.T) {
	store := func(t *testing.T) string { dsn, _ := database(t); return dsn }
	locktest.RunProcesses(t, true, store, func(t *testing.T, dsn string) lock.Locker {
		return open(t, dsn, Options{Wait: locktest.Patience})
	})
}
