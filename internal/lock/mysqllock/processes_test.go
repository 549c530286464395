package mysqllock

import (
	"testing"
	"time"

	"flashsale/internal/lock"
	"flashsale/internal/lock/locktest"
)

func TestRowExcludesAcrossProcesses(t *testing.T) {
	const ttl = 2 * time.Second
	store := func(t *testing.T) string { dsn, _ := database(t); return dsn }
	locktest.Processes{Fenced: true, TTL: ttl, Store: store, Open: func(t *testing.T, dsn string) lock.Locker {
		return open(t, dsn, Options{TTL: ttl, Wait: locktest.Patience})
	}}.Run(t)
}
