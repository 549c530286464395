//go:build unix

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	_ "github.com/go-sql-driver/mysql" // for the bare insert

	"flashsale/internal/stock"
)

// bareBatch is how many rows the bare insert has, as many as a syncer's batch.
const bareBatch = 500

// ledgerAlone measures what concerns the ledger without what comes before, after
// selling something for the syncer to work off.
func (s *setup) ledgerAlone(ctx context.Context, r *result) error {
	err := inTurn(ctx, r, []part{
		{"backlog", s.fillBacklog}, {"rate", s.ledgerRate}, {"delay", s.delayToLedger}, {"audits", s.audits},
	})
	if err != nil {
		return err
	}
	if over := ratio(r.Raw.SyncerRows, r.Raw.BareRows); over != nil {
		s.say("syncer / bare insert %.2f, syncer / accepted %.2f", *over, median(r.Raw.SyncerRows)/r.rate("atomic"))
	}
	return nil
}

// fillBacklog sells, a sale a round.
func (s *setup) fillBacklog(ctx context.Context, r *result) error {
	api, err := s.api(ctx)
	if err != nil {
		return err
	}
	defer api.stop()
	for range backlogSales {
		sale, err := s.newSale(ctx, api, "atomic", stock.MaxStock)
		if err != nil {
			return err
		}
		shot, err := s.shoot(ctx, load{addrs: []string{api.addr}, sale: sale})
		if err != nil {
			return err
		}
		r.add("atomic", shot)
		s.say("backlog: %d sold, %.0f/s", shot.All, shot.rate())
	}
	return nil
}

// backlogSales are as many as the request path leaves with much to settle.
const backlogSales = 9

// ledgerRate lets the syncer work off what the request path has sold, and
// inserts rows of the same shape into the same table without it, in turns.
func (s *setup) ledgerRate(ctx context.Context, r *result) error {
	db, err := sql.Open("mysql", s.dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	bare := &bareInsert{db: db, setup: s}
	api, err := s.api(ctx)
	if err != nil {
		return err
	}
	bare.sale, err = s.newSale(ctx, api, "atomic", stock.MaxStock)
	api.stop()
	if err != nil {
		return err
	}
	for round := range s.rounds {
		synced, err := s.syncerRate(ctx, db)
		if err != nil {
			return fmt.Errorf("syncer: %w", err)
		}
		inserted, err := bare.rate(ctx)
		if err != nil {
			return fmt.Errorf("bare insert: %w", err)
		}
		r.Raw.SyncerRows = append(r.Raw.SyncerRows, synced)
		r.Raw.BareRows = append(r.Raw.BareRows, inserted)
		s.say("round %d: syncer %8.0f rows/s, bare insert %8.0f rows/s", round+1, synced, inserted)
	}
	return nil
}

// syncerRate is the rows a second of a syncer that has a backlog, from its
// first rows on.
func (s *setup) syncerRate(ctx context.Context, db *sql.DB) (float64, error) {
	syncer, err := s.syncer(ctx)
	if err != nil {
		return 0, err
	}
	defer syncer.stop()
	defer s.profiling(ctx, syncer, "ledger", s.ledger)()
	before, err := s.rows(ctx, db)
	if err != nil {
		return 0, err
	}
	var first, last, n int64
	var began, at time.Time
	for deadline := time.Now().Add(s.perTest); ; {
		if n, err = s.rows(ctx, db); err != nil {
			return 0, err
		}
		now := time.Now()
		switch {
		case n == before && first == 0: // it is joining its group
			if now.After(deadline) {
				return 0, errors.New("no rows")
			}
		case first == 0:
			first, last, began, at = n, n, now, now
		case n > last:
			last, at = n, now
		}
		if first > 0 && (now.Sub(began) > s.ledger || now.Sub(at) > s.ledger/3) { // enough, or nothing is left
			if at.Equal(began) { // one batch was all
				return float64(first - before), nil
			}
			return float64(last-first) / at.Sub(began).Seconds(), nil
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// rows is how many rows the syncer has made, by what it took off the sales.
func (s *setup) rows(ctx context.Context, db *sql.DB) (n int64, err error) {
	err = db.QueryRowContext(ctx, "SELECT COALESCE(SUM(stock - remaining), 0) FROM sales WHERE id LIKE ?", s.prefix+"-%").Scan(&n)
	return n, err
}

// bareInsert is a prepared INSERT of many rows, each batch a transaction.
type bareInsert struct {
	*setup
	db   *sql.DB
	sale string
	n    int
}

func (b *bareInsert) rate(ctx context.Context) (float64, error) {
	row := "(?,?,?,?,?,?,?,?,?,?,?)"
	statement, err := b.db.PrepareContext(ctx, "INSERT INTO purchases (purchase_id, sale_id, user_id, quantity, price_cents, fence, status, reason, live, created_at, persisted_at) VALUES "+
		strings.Repeat(row+",", bareBatch-1)+row)
	if err != nil {
		return 0, err
	}
	defer statement.Close()
	began, inserted := time.Now(), 0
	for time.Since(began) < b.ledger {
		args := make([]any, 0, 11*bareBatch)
		for range bareBatch {
			b.n++
			user, now := fmt.Sprintf("u%09d", b.n), time.Now().UTC()
			args = append(args, stock.PurchaseID(b.sale, user, "k"), b.sale, user, 1, 49900, 0, "persisted", "", 1, now, now)
		}
		if _, err := statement.ExecContext(ctx, args...); err != nil {
			return 0, err
		}
		inserted += bareBatch
	}
	return float64(inserted) / time.Since(began).Seconds(), nil
}

// delayToLedger sells at half the rate that the API alone accepts, with the
// syncer at work, and looks for the rows of some purchases.
func (s *setup) delayToLedger(ctx context.Context, r *result) error {
	db, err := sql.Open("mysql", s.dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	api, err := s.api(ctx)
	if err != nil {
		return err
	}
	defer api.stop()
	syncer, err := s.syncer(ctx)
	if err != nil {
		return err
	}
	defer syncer.stop()
	if err := s.caughtUp(ctx, db); err != nil {
		return err
	}
	sale, err := s.newSale(ctx, api, "atomic", stock.MaxStock)
	if err != nil {
		return err
	}
	watch := newWatch(db, s.sampled)
	looking, stop := context.WithCancel(ctx)
	defer stop()
	looked := make(chan error, 1)
	go func() { looked <- watch.look(looking, s.perTest) }()
	l := load{addrs: []string{api.addr}, sale: sale, duration: s.delay, rate: r.rate("atomic") / 2, accepted: watch.accepted}
	shot, err := s.shoot(ctx, l)
	if err != nil {
		return err
	}
	watch.end()
	if err := <-looked; err != nil {
		return err
	}
	if len(watch.delays) == 0 {
		return errors.New("no purchase was sampled")
	}
	slices.Sort(watch.delays)
	all := shot
	all.latencies = watch.delays
	r.Raw.HalfRate, r.Raw.Sampled = shot.rate(), len(watch.delays)
	r.LedgerP99, r.Raw.LedgerP50 = new(milliseconds(all.percentile(.99))), milliseconds(all.percentile(.5))
	s.say("201 to row at %.0f/s: p50 %.0f ms, p99 %.0f ms of %d", r.Raw.HalfRate, r.Raw.LedgerP50, *r.LedgerP99, r.Raw.Sampled)
	return s.caughtUp(ctx, db)
}

// caughtUp waits until the syncer has nothing left to do: until there is a row
// for everything that was answered 201. That no rows come does not say so, it may
// be joining its group.
func (s *setup) caughtUp(ctx context.Context, db *sql.DB) error {
	for deadline := time.Now().Add(s.settled); ; time.Sleep(20 * time.Millisecond) {
		n, err := s.rows(ctx, db)
		if err != nil {
			return err
		}
		if n >= s.owed {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the syncer has not caught up: %d rows of %d", n, s.owed)
		}
	}
}

// watch looks for the rows of one purchase in so many. A row is there when
// another connection can read it.
type watch struct {
	db  *sql.DB
	nth int

	mu      sync.Mutex
	n       int
	pending map[string]time.Time // when it was answered 201
	ended   bool
	delays  []time.Duration
}

func newWatch(db *sql.DB, nth int) *watch {
	return &watch{db: db, nth: nth, pending: map[string]time.Time{}}
}

func (w *watch) accepted(id []byte) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.n++; w.n%w.nth == 0 {
		w.pending[string(id)] = now
	}
}

func (w *watch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
}

func (w *watch) look(ctx context.Context, patience time.Duration) error {
	var deadline time.Time
	for {
		w.mu.Lock()
		ids := make([]any, 0, len(w.pending))
		for id := range w.pending {
			ids = append(ids, id)
		}
		ended := w.ended
		w.mu.Unlock()
		switch {
		case len(ids) == 0 && ended:
			return nil
		case ended && deadline.IsZero():
			deadline = time.Now().Add(patience)
		case ended && time.Now().After(deadline):
			return fmt.Errorf("%d purchases are not in the ledger", len(ids))
		}
		for part := range slices.Chunk(ids, 500) {
			found, err := w.find(ctx, part)
			if err != nil {
				return err
			}
			now := time.Now()
			w.mu.Lock()
			for _, id := range found {
				w.delays = append(w.delays, now.Sub(w.pending[id]))
				delete(w.pending, id)
			}
			w.mu.Unlock()
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (w *watch) find(ctx context.Context, ids []any) (found []string, err error) {
	rows, err := w.db.QueryContext(ctx, "SELECT purchase_id FROM purchases WHERE purchase_id IN (?"+strings.Repeat(",?", len(ids)-1)+")", ids...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		found = append(found, id)
	}
	return found, rows.Err()
}
