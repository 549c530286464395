//go:build unix

package e2e

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"flashsale/internal/lock"
)

const (
	pausedTTL = time.Second
	lateTTL   = 300 * time.Millisecond // less than what an API waits for Redis
)

// TestHolderIsPaused stops a whole API while it holds the sale's lock. Its
// watchdog stands still as well, the lease ends, the other API sells.
func TestHolderIsPaused(t *testing.T) {
	t.Parallel()
	in := install(t, own{})
	v := newVisitor(t)
	settings := []string{"LOCK_TTL=" + pausedTTL.String(), "LOCK_WAIT=20s"}
	holder, other := in.api(t, append(settings, "ADMIN_LISTEN=127.0.0.1:0")...), in.api(t, settings...)
	admin := "http://" + holder.await("the API listens", "admin")
	in.syncer(t)
	for _, variant := range []string{"watchdog", "setnx"} {
		t.Run(variant, func(t *testing.T) {
			work := 2 * pausedTTL
			if variant == "setnx" {
				work = pausedTTL / 2 // it doesn't extend
			}
			v.want("201", v.createSale(holder.url, variant, variant, 10, terms{work: work}))
			late := make(chan answer, 1)
			go func() { late <- v.buy(holder.url, variant, "late", "late") }()
			// Redis isn't asked: who is stopped before it has read the grant asks again.
			held := fmt.Sprintf("\nflashsale_lock_acquisitions_total{outcome=%q,variant=%q} 1\n", lock.OutcomeAcquired, variant)
			eventually(t, 10*time.Second, "the lock is held", func() bool {
				return strings.Contains(v.want("200", v.send("GET", admin+"/metrics", "")).text, held)
			})
			holder.signal(syscall.SIGSTOP)
			next := v.buy(other.url, variant, "next", "next")
			holder.signal(syscall.SIGCONT)
			v.want("201", next)

			v.want("503 lock_lost", <-late)
			if rows := in.rowsOf(v, other, variant); len(rows) != 1 || rows[0].user != "next" {
				t.Errorf("rows %+v", rows)
			}
			v.want("201", v.buy(holder.url, variant, "late", "late")) // the same purchase again
			v.exact(other.url, variant)
		})
	}
}

// TestWriteIsLate holds up a holder's write on its way to Redis until its lease
// has ended and the other API has sold. The fence is all that can refuse it.
func TestWriteIsLate(t *testing.T) {
	t.Parallel()
	in := install(t, own{})
	v := newVisitor(t)
	gate := newGate(t, in.redis)
	settings := []string{"LOCK_TTL=" + lateTTL.String(), "LOCK_WAIT=20s"}
	holder, other := in.api(t, append(settings, "REDIS_ADDRS="+gate.addr())...), in.api(t, settings...)
	in.syncer(t)
	for _, test := range []struct {
		fencing string
		want    string
		lost    int64
	}{
		{"on", "503 lock_lost", 0},
		{"off", "201", 1},
	} {
		t.Run("fencing "+test.fencing, func(t *testing.T) {
			for _, sale := range []string{"once-" + test.fencing, "twice-" + test.fencing, "thrice-" + test.fencing} {
				v.want("201", v.createSale(other.url, sale, "watchdog", 10, terms{fencing: test.fencing}))
				v.want("201", v.buy(holder.url, sale, "first", "first")) // so that Redis knows the scripts

				held := gate.holdBefore(`"deducted"`)
				late := make(chan answer, 1)
				go func() { late <- v.buy(holder.url, sale, "late", "late") }()
				<-held
				began := time.Now()
				next := v.buy(other.url, sale, "next", "next")
				took := time.Since(began)
				gate.open()
				v.want("201", next)
				got := <-late
				audit := v.audit(other.url, sale)
				if took > time.Second && got.is("503 outcome_unknown") {
					t.Logf("too slow: the other one took %v, so that the holder had given up", took)
					continue
				}
				v.want(test.want, got)
				if want := 2 + test.lost; audit.LostUpdates != test.lost || audit.Accepted != want || audit.Persisted != want || !audit.Settled || !audit.Deep.Same() {
					t.Errorf("audit %+v, deep %+v", audit, audit.Deep)
				}
				return
			}
			t.Error("too slow, three times")
		})
	}
}

// rowsOf are the ledger's rows once the sale has settled.
func (in *installation) rowsOf(v *visitor, api *program, sale string) (rows []row) {
	v.t.Helper()
	v.exact(api.url, sale)
	for _, r := range in.rows(v.t, sale) {
		rows = append(rows, r)
	}
	return rows
}
