//go:build unix

package e2e

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"flashsale/internal/stock"
)

// Load is bounded in rate, number and time, whatever a test waits for.
const (
	loadWorkers = 12
	loadPause   = 30 * time.Millisecond // of a worker, between two purchases
	loadMost    = 20_000                // purchases
	loadTimeout = 2 * time.Minute
)

// loadUnits is a stock that the load can't sell out.
const loadUnits = loadMost + 1

// load is buyers who buy once each, and what they were told.
type load struct {
	t       testing.TB
	visitor *visitor
	over    chan struct{}
	workers sync.WaitGroup

	mu       sync.Mutex
	next     int
	buyers   map[string]buyer // by purchase ID
	kinds    map[string]int   // of answers
	slowest  answer
	finished bool
}

// buyer is one purchase and its only answer.
type buyer struct {
	sale, user string
	kind       string
}

// buying starts a load on several sales by several APIs.
func buying(t testing.TB, v *visitor, sales []string, urls ...string) *load {
	l := &load{t: t, visitor: v, over: make(chan struct{}), buyers: map[string]buyer{}, kinds: map[string]int{}}
	end := time.Now().Add(loadTimeout)
	for range loadWorkers {
		l.workers.Go(func() {
			pause := time.NewTicker(loadPause)
			defer pause.Stop()
			for time.Now().Before(end) && l.buyOne(sales, urls) {
				select {
				case <-pause.C:
				case <-l.over:
					return
				}
			}
		})
	}
	t.Cleanup(l.end)
	return l
}

func (l *load) buyOne(sales, urls []string) bool {
	l.mu.Lock()
	n := l.next
	l.next++
	l.mu.Unlock()
	if n >= loadMost {
		return false
	}
	b := buyer{sale: sales[n%len(sales)], user: fmt.Sprintf("load-%d", n)}
	a := l.visitor.buy(urls[n/len(sales)%len(urls)], b.sale, b.user, b.user)
	b.kind = a.kind()
	id := stock.PurchaseID(b.sale, b.user, b.user)

	l.mu.Lock()
	defer l.mu.Unlock()
	l.buyers[id] = b
	l.kinds[b.kind]++
	if a.took > l.slowest.took {
		l.slowest = a
	}
	if b.kind == "201" && a.body["purchase_id"] != id {
		l.t.Errorf("purchase_id %v of user %s, want %s", a.body["purchase_id"], b.user, id)
	}
	return true
}

// count is how often a kind of answer has come.
func (l *load) count(kind string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.kinds[kind]
}

// more waits for so many further purchases to be accepted.
func (l *load) more(n int) {
	l.t.Helper()
	from := l.count("201")
	eventually(l.t, 30*time.Second, fmt.Sprintf("%d more purchases", n), func() bool { return l.count("201") >= from+n })
}

// end stops the buyers and waits for their last answers.
func (l *load) end() {
	l.mu.Lock()
	finished := l.finished
	l.finished = true
	l.mu.Unlock()
	if !finished {
		close(l.over)
	}
	l.workers.Wait()
}

// settle ends the load and holds what the buyers were told against the ledger:
// who read 201 has one row, who was refused has none, and of those who were
// told nothing, or that nobody knows, each has one or none. Kinds are the
// answers that may have come beside 201.
func (l *load) settle(in *installation, url string, kinds ...string) {
	t := l.t
	t.Helper()
	l.end()
	t.Logf("answers: %v, the slowest after %v: %v", l.kinds, l.slowest.took.Round(time.Millisecond), l.slowest)
	for kind := range l.kinds {
		if kind != "201" && !slices.Contains(kinds, kind) {
			t.Errorf("%d times %s", l.kinds[kind], kind)
		}
	}
	bySale := map[string]map[string]buyer{}
	for id, b := range l.buyers {
		if bySale[b.sale] == nil {
			bySale[b.sale] = map[string]buyer{}
		}
		bySale[b.sale][id] = b
	}
	for _, sale := range slices.Sorted(maps.Keys(bySale)) {
		audit := l.visitor.exact(url, sale)
		rows := in.rows(t, sale)
		if int64(len(rows)) != audit.Accepted || in.left(t, sale) != audit.Initial-audit.Accepted || audit.Remaining != audit.Initial-audit.Accepted {
			t.Errorf("sale %s: %d rows, %d left, audit %+v", sale, len(rows), in.left(t, sale), audit)
		}
		compare(t, bySale[sale], rows)
	}
}

// compare takes rows away while it finds their buyers.
func compare(t testing.TB, buyers map[string]buyer, rows map[string]row) {
	t.Helper()
	faults := 0
	fault := func(format string, values ...any) {
		if faults++; faults <= 10 {
			t.Errorf(format, values...)
		}
	}
	for id, b := range buyers {
		r, found := rows[id]
		delete(rows, id)
		switch sold := b.kind == "201"; {
		case sold && !found:
			fault("%s was told 201, and is not in the ledger: %s", b.user, id)
		case found && (r.user != b.user || r.quantity != 1 || r.status != "persisted"):
			fault("%s has this row: %+v", b.user, r)
		case found && !sold && b.kind != "cut off" && b.kind != "503 outcome_unknown":
			fault("%s was told %s, and has this row: %+v", b.user, b.kind, r)
		}
	}
	for _, r := range rows {
		if r.user != extra {
			fault("nobody's row: %+v", r)
		}
	}
	if faults > 10 {
		t.Errorf("and %d more", faults-10)
	}
}

// extra is the user of purchases that a test makes beside the load.
const extra = "extra"
