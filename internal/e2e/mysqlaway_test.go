//go:build unix

package e2e

import (
	"testing"
	"time"

	"flashsale/internal/servers/servertest"
)

// TestMySQLIsKilledUnderLoad starts an API and a syncer while it is away.
func TestMySQLIsKilledUnderLoad(t *testing.T) {
	t.Parallel()
	database := servertest.SQLServer(t)
	in := install(t, own{sql: database})
	v, first := newVisitor(t), in.api(t)
	syncer := in.syncer(t)
	sales := []string{"atomic", "watchdog"}
	for _, sale := range sales {
		v.want("201", v.createSale(first.url, sale, sale, loadUnits, terms{}))
	}
	before := buying(t, v, sales, first.url)
	before.more(100)

	database.Kill()
	killed := time.Now()
	before.more(50)
	v.degraded(first.url, "sql")
	syncer.end() // with a batch in hand that it can't settle

	second := in.api(t)
	in.syncer(t)
	v.degraded(second.url, "sql")
	v.want("201", v.buy(second.url, "atomic", extra, extra))
	v.want("503 unavailable", v.createSale(second.url, "late", "atomic", 1, terms{}))
	eventually(t, time.Minute, "10 s are over", func() bool { return time.Since(killed) >= outage })
	before.more(50)

	if err := database.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	before.more(50)
	before.settle(in, second.url)
	v.want("201", v.createSale(second.url, "late", "atomic", 1, terms{}))
	for _, api := range []*program{first, second} {
		if status, away := v.ready(api.url); status != "ready" {
			t.Errorf("readyz: %s, away %v", status, away)
		}
	}
}
