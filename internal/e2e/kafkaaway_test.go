//go:build unix

package e2e

import (
	"slices"
	"testing"
	"time"

	"flashsale/internal/servers/servertest"
)

const (
	outage        = 10 * time.Second
	outageBacklog = 500 // entries that pile up meanwhile
)

func TestKafkaIsStoppedUnderLoad(t *testing.T) {
	t.Parallel()
	kafka := servertest.KafkaServer(t)
	in := install(t, own{kafka: kafka})
	v, api := newVisitor(t), in.api(t)
	in.syncer(t)
	sales := []string{"atomic", "watchdog"}
	for _, sale := range sales {
		v.want("201", v.createSale(api.url, sale, sale, loadUnits, terms{}))
	}
	l := buying(t, v, sales, api.url)
	l.more(100)

	if err := kafka.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	stopped, before := time.Now(), in.outbox(t)
	eventually(t, time.Minute, "10 s are over and the outbox has grown", func() bool {
		return time.Since(stopped) >= outage && in.outbox(t) >= before+outageBacklog
	})
	v.degraded(api.url, "kafka")
	l.more(10)
	if err := kafka.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.more(50)
	l.end()
	eventually(t, time.Minute, "the outbox drains", func() bool { return in.outbox(t) == 0 })
	l.settle(in, api.url)
	eventually(t, 10*time.Second, "the API is ready again", func() bool { status, _ := v.ready(api.url); return status == "ready" })
}

// degraded wants /readyz to find exactly this away, and to be fine with it.
func (v *visitor) degraded(url, name string) {
	v.t.Helper()
	if status, away := v.ready(url); status != "degraded" || !slices.Equal(away, []any{name}) {
		v.t.Errorf("readyz: %s, away %v", status, away)
	}
}
