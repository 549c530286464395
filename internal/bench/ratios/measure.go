//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"flashsale/internal/app"
	"flashsale/internal/audit"
	"flashsale/internal/rediskey"
	"flashsale/internal/stock"
)

// size is how long each part takes.
type size struct {
	rounds           int
	clients          int
	warmUp, load     time.Duration // of each measurement on the request path
	stock, buyers    int           // of the races
	ledger           time.Duration // of each measurement of the syncer and of the bare insert
	delay            time.Duration // of the measurement from 201 to row
	sampled          int           // one purchase in so many
	settled, perTest time.Duration // at most, for the ledger to catch up, and for a row to appear

	only    []string // paths, or ledger: nothing else is measured
	profile string   // a folder for profiles of the API on each path, and of the syncer
}

var fullSize = size{
	rounds: 3, clients: 64, warmUp: 400 * time.Millisecond, load: 2 * time.Second, stock: 500, buyers: 2000,
	ledger: 3 * time.Second, delay: 8 * time.Second, sampled: 40, settled: 90 * time.Second, perTest: 20 * time.Second,
}

// setup is an installation of its own, and what was done to it.
type setup struct {
	size
	*programs
	tools  *app.Installation
	redis  *redis.Client
	keys   rediskey.Keys
	log    io.Writer
	prefix string
	dsn    string
	stores app.Config // where Redis and Kafka are

	sales  []string
	sold   map[string]int // 201s of each sale that must not be sold wrongly
	owed   int64          // 201s that the ledger has a row of, or will have
	failed []string       // what must not happen
	user   int            // number of the next user
}

// measure does it all, and takes everything away again. Beside an error there is
// a result of what was measured before it, as soon as anything could have been.
func measure(ctx context.Context, cfg app.Config, size size, log io.Writer) (_ *result, err error) {
	cfg.Prefix = fmt.Sprintf("ratios-%d", os.Getpid())
	dir, err := os.MkdirTemp("", "flashsale-ratios-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	s := &setup{size: size, log: log, keys: rediskey.Keys{Prefix: cfg.Prefix}, prefix: cfg.Prefix, dsn: cfg.MySQLDSN, stores: cfg, sold: map[string]int{}}
	if s.programs, err = buildPrograms(ctx, dir, cfg, size.profile != ""); err != nil {
		return nil, err
	}
	if s.tools, err = app.OpenInstallation(cfg); err != nil {
		return nil, err
	}
	defer s.tools.Close()
	s.redis = redis.NewClient(&redis.Options{Addr: cfg.RedisAddrs[0]})
	defer s.redis.Close()
	if _, err := s.tools.MigrateSchema(ctx); err != nil {
		return nil, err
	}
	if _, err := s.tools.MigrateTopics(ctx); err != nil {
		return nil, err
	}
	defer func() { // the sales with their rows: the database is somebody's
		err = errors.Join(err, s.tools.Remove(context.WithoutCancel(ctx), s.sales))
	}()

	r := &result{}
	began := time.Now()
	if size.only != nil {
		parts := []part{{"request path", s.requestPath}}
		if slices.Contains(size.only, "ledger") {
			parts = append(parts, part{"ledger", s.ledgerAlone})
		}
		return nil, errors.Join(inTurn(ctx, r, parts), s.failure())
	}
	err = inTurn(ctx, r, []part{
		{"request path", s.requestPath}, {"two APIs", s.twoAPIs}, {"race", s.race},
		{"ledger rate", s.ledgerRate}, {"delay to the ledger", s.delayToLedger}, {"audits", s.audits},
	})
	r.finish()
	r.Raw.Seconds = time.Since(began).Seconds()
	r.Raw.Failures = s.failed
	return r, errors.Join(err, s.failure())
}

// part is one of the measurements, which adds to the result what it has found.
type part struct {
	name string
	run  func(context.Context, *result) error
}

// inTurn ends with the first part that fails: each builds on those before it.
func inTurn(ctx context.Context, r *result, parts []part) error {
	for _, p := range parts {
		if err := p.run(ctx, r); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

// failure is what must not have happened and did.
func (s *setup) failure() error {
	if s.failed == nil {
		return nil
	}
	return errors.New(strings.Join(s.failed, "\n"))
}

func (s *setup) say(format string, args ...any) { fmt.Fprintf(s.log, "ratios: "+format+"\n", args...) }

func (s *setup) fail(format string, args ...any) {
	s.failed = append(s.failed, fmt.Sprintf(format, args...))
}

// newSale puts a sale of one hot item up, over HTTP.
func (s *setup) newSale(ctx context.Context, api *process, variant string, units int) (string, error) {
	id := fmt.Sprintf("%s-%d", s.prefix, len(s.sales))
	body, err := json.Marshal(map[string]any{"id": id, "item_id": "hot", "title": "Hot", "price_cents": 49900, "stock": units, "variant": variant, "per_user_limit": 1})
	if err != nil {
		return "", err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+api.addr+"/v1/sales", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	request.Header.Set("Authorization", "Bearer "+adminToken)
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	if text, _ := io.ReadAll(answer.Body); answer.StatusCode != http.StatusCreated {
		return "", fmt.Errorf("new sale: %s: %s", answer.Status, text)
	}
	s.sales = append(s.sales, id)
	return id, nil
}

// shoot is a load on a sale by users that nobody has been before, after a
// shorter one to warm up. It wants the outbox to be empty before and after.
func (s *setup) shoot(ctx context.Context, l load) (*shot, error) {
	l.clients = s.clients
	duration, sold := max(l.duration, s.load), 0
	fire := func(d time.Duration) (*shot, error) {
		l.first, l.duration = s.user, d
		shot, err := l.fire(ctx)
		if err != nil {
			return nil, err
		}
		s.user += shot.All + shot.Refused + shot.Busy + shot.Other + l.clients
		sold += shot.All
		return shot, nil
	}
	if s.warmUp > 0 && l.requests == 0 {
		if _, err := fire(s.warmUp); err != nil {
			return nil, err
		}
	}
	parties := partiesOf(map[string][]string{"api": l.addrs, "redis": s.stores.RedisAddrs, "kafka": s.stores.KafkaBrokers})
	before := parties.burnt()
	shot, err := fire(duration)
	if err != nil {
		return nil, err
	}
	shot.Spent = parties.burnt().since(before, shot.All)
	s.sold[l.sale] = sold
	if slices.Contains(s.sales, l.sale) { // Gin sells nothing
		s.owed += int64(sold)
	}
	if shot.Other > 0 {
		s.fail("%s: %d answers that are no answers", l.sale, shot.Other)
	}
	return shot, s.drained(ctx)
}

// drained waits for the relay: what one measurement left must not be the next
// one's burden.
func (s *setup) drained(ctx context.Context) error {
	for deadline := time.Now().Add(s.settled); ; {
		var entries int64
		for shard := range rediskey.Shards {
			n, err := s.redis.XLen(ctx, s.keys.Outbox(shard)).Result()
			if err != nil {
				return err
			}
			entries += n
		}
		if entries == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the outbox still has %d entries", entries)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// paths are what is measured on the request path, in the order in which they
// take turns.
var paths = []struct {
	name, variant string
	start         func(*programs, context.Context) (*process, error)
}{
	{"gin", "", (*programs).gin},
	{"atomic", "atomic", (*programs).api},
	{"atomic_single_script", "atomic", (*programs).single},
	{"none", "none", (*programs).api},
	{"watchdog-combining", "watchdog-combining", (*programs).api},
	{"setnx", "setnx", (*programs).api},
	{"watchdog", "watchdog", (*programs).api},
}

// requestPath measures each path with a process to itself.
func (s *setup) requestPath(ctx context.Context, r *result) error {
	for round := range s.rounds {
		for _, p := range paths {
			if s.only != nil && !slices.Contains(s.only, p.name) {
				continue
			}
			shot, err := s.one(ctx, p.variant, p.start)
			if err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
			r.add(p.name, shot)
			s.say("round %d: %-20s %8.0f/s  p50 %6.2f ms  p99 %6.2f ms  generator %2.0f %%%s", round+1, p.name, shot.rate(),
				milliseconds(shot.percentile(.5)), milliseconds(shot.percentile(.99)), 100*share(shot), shot.Spent)
		}
	}
	return nil
}

func (s *setup) one(ctx context.Context, variant string, start func(*programs, context.Context) (*process, error)) (*shot, error) {
	server, err := start(s.programs, ctx)
	if err != nil {
		return nil, err
	}
	defer server.stop()
	l := load{addrs: []string{server.addr}, sale: "hot"}
	if variant != "" {
		if l.sale, err = s.newSale(ctx, server, variant, stock.MaxStock); err != nil {
			return nil, err
		}
	}
	profiled := s.profiling(ctx, server, variant, s.warmUp+s.load)
	shot, err := s.shoot(ctx, l)
	profiled()
	if variant == "" || variant == "none" { // what is not promised is not checked
		delete(s.sold, l.sale)
	}
	return shot, err
}

// profiling takes a CPU profile of a process while it is under load.
func (s *setup) profiling(ctx context.Context, server *process, name string, d time.Duration) (wait func()) {
	if s.profile == "" || server.admin == "" {
		return func() {}
	}
	var done sync.WaitGroup
	done.Go(func() {
		err := fetch(ctx, fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", server.admin, int(d.Seconds())), filepath.Join(s.profile, name+".pprof"))
		if err != nil {
			s.say("no profile of %s: %v", name, err)
		}
	})
	return done.Wait
}

func fetch(ctx context.Context, url, file string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	return os.WriteFile(file, content, 0o644)
}

// twoAPIs sells one item through one process and through two, in turns.
func (s *setup) twoAPIs(ctx context.Context, r *result) error {
	for round := range s.rounds {
		for n, name := range []string{"one_api", "two_apis"} {
			shot, err := s.through(ctx, n+1)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			r.add(name, shot)
			s.say("round %d: %-20s %8.0f/s  p99 %6.2f ms", round+1, name, shot.rate(), milliseconds(shot.percentile(.99)))
		}
	}
	return nil
}

func (s *setup) through(ctx context.Context, processes int) (*shot, error) {
	l := load{}
	for range processes {
		api, err := s.api(ctx)
		if err != nil {
			return nil, err
		}
		defer api.stop()
		l.addrs = append(l.addrs, api.addr)
		if l.sale == "" {
			if l.sale, err = s.newSale(ctx, api, "atomic", stock.MaxStock); err != nil {
				return nil, err
			}
		}
	}
	return s.shoot(ctx, l)
}

// race has more buyers than units, before two processes.
func (s *setup) race(ctx context.Context, r *result) error {
	var apis []*process
	var addrs []string
	for range 2 {
		api, err := s.api(ctx)
		if err != nil {
			return err
		}
		defer api.stop()
		apis, addrs = append(apis, api), append(addrs, api.addr)
	}
	for _, variant := range []string{"watchdog-combining", "atomic"} {
		sale, err := s.newSale(ctx, apis[0], variant, s.stock)
		if err != nil {
			return err
		}
		shot, err := s.shoot(ctx, load{addrs: addrs, sale: sale, requests: s.buyers, duration: time.Minute})
		if err != nil {
			return err
		}
		s.say("race: %-20s %d of %d units sold to %d buyers", variant, shot.All, s.stock, s.buyers)
		if shot.All != s.stock {
			s.fail("%s: %d of %d units sold in a race", variant, shot.All, s.stock)
		}
	}
	return nil
}

// audits compares, sale by sale, what was answered, what Redis has and what the
// ledger has; one purchase at a time where there was a race. By now everything
// must be settled.
func (s *setup) audits(ctx context.Context, r *result) error {
	for _, sale := range s.sales {
		sold, checked := s.sold[sale]
		if !checked {
			continue
		}
		a, err := s.tools.Audit(ctx, sale, audit.Options{Wait: s.settled, Deep: sold == s.stock})
		if err != nil {
			return err
		}
		r.Raw.Audited++
		r.Raw.Oversold += a.Oversold
		r.Raw.Lost += a.LostUpdates + a.Undersold + a.Duplicates
		if a.Oversold+a.LostUpdates+a.Undersold+a.Duplicates+a.Rejected != 0 || !a.Settled || a.Accepted != int64(sold) {
			s.fail("%s (%s): %d were answered 201, the audit is %+v", sale, a.Variant, sold, a)
		}
	}
	return nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
