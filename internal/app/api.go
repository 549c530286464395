package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"flashsale/internal/audit"
	"flashsale/internal/httpapi"
	"flashsale/internal/kafkastock"
	"flashsale/internal/lock/redislock"
	"flashsale/internal/metrics"
	"flashsale/internal/rediskey"
	"flashsale/internal/redisstock"
	"flashsale/internal/relay"
	"flashsale/internal/sqlstock"
	"flashsale/internal/stock"
)

const (
	maxHeader = 16 << 10 // bytes

	// relayTTL is the lease of an outbox shard: so long it goes unserved when
	// its relay is killed.
	relayTTL = 5 * time.Second
)

// API is the program that serves the HTTP interface and runs the relay.
type API struct {
	config Config
	logger *slog.Logger

	listener net.Listener
	server   *http.Server
	open     sync.WaitGroup // connections of server
	admin    *admin
	relay    *relay.Relay
	closers  []io.Closer // in the order in which they are opened

	draining atomic.Bool
	drain    context.Context // ends when draining begins
	endWaits context.CancelFunc
}

// NewAPI opens the API's listeners and finds out whether the servers behind it
// fit. Any of them may be away: Redis too, though until it is there the API is
// not ready. With the schema of another version, or without the Kafka topics,
// there is no API. Run must be called, or Close.
func NewAPI(ctx context.Context, cfg Config, logger *slog.Logger) (_ *API, err error) {
	cfg = cfg.withDefaults()
	if err := wants("API", map[string]bool{"Listen": cfg.Listen != "" || cfg.Listener != nil, "RedisAddrs": len(cfg.RedisAddrs) > 0, "KafkaBrokers": len(cfg.KafkaBrokers) > 0,
		"MySQLDSN": cfg.MySQLDSN != "", "AdminToken": cfg.AdminToken != ""}); err != nil {
		return nil, err
	}
	a := &API{config: cfg, logger: logger}
	a.drain, a.endWaits = context.WithCancel(context.Background())
	defer func() {
		if err != nil {
			_ = a.Close()
		}
	}()

	if a.listener = cfg.Listener; a.listener == nil {
		if a.listener, err = net.Listen("tcp", cfg.Listen); err != nil {
			return nil, fmt.Errorf("app: %w", err)
		}
	}
	observed := metrics.New(Variants())
	if a.admin, err = newAdmin(cfg.AdminListen, observed.Handler(), logger); err != nil {
		return nil, err
	}
	handler, err := a.wire(ctx, observed)
	if err != nil {
		return nil, err
	}
	a.server = &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      10*time.Second + cfg.LockWait + stock.MaxWork + 10*time.Second, // reading, waiting, working, stores that hang
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
		ConnState:         a.count,
	}
	return a, nil
}

// wire makes the parts and puts them together.
func (a *API) wire(ctx context.Context, observed *metrics.Metrics) (http.Handler, error) {
	cfg := a.config
	keys := rediskey.Keys{Prefix: cfg.Prefix}

	client, err := newRedis(cfg.RedisAddrs, purchasePool(), cfg.RedisTimeout)
	if err != nil {
		return nil, err
	}
	a.opened(client)
	store := redisstock.New(client, redisstock.Options{Keys: keys})
	locks := redislock.Options{TTL: cfg.LockTTL, Wait: cfg.LockWait, PollMin: cfg.PollMin, PollMax: cfg.PollMax, Keys: lockKeys(keys)}
	ledger, err := sqlstock.Open(cfg.MySQLDSN, sqlstock.Options{Logger: a.logger})
	if err != nil {
		return nil, fmt.Errorf("app: %w", err)
	}
	a.opened(ledger)
	built, closers, err := build(backends{config: cfg, redis: client, locks: locks, store: store, ledger: ledger}, observed.Locks(a.logger))
	a.opened(closers...)
	if err != nil {
		return nil, fmt.Errorf("app: %w", err)
	}

	kafka := kafkastock.Options{Brokers: cfg.KafkaBrokers, Topics: kafkastock.Names(cfg.Prefix), Logger: a.logger}
	if err := a.wireRelay(keys, kafka, observed); err != nil {
		return nil, err
	}

	ping := dependency{"redis", func(ctx context.Context) error { return client.Ping(ctx).Err() }}
	topics := dependency{"kafka", func(ctx context.Context) error { return kafkastock.Ping(ctx, kafka) }}
	schema := dependency{"sql", ledger.CheckSchema}
	if err := look(ctx, a.logger, append(lockServers(cfg), ping, topics, schema)...); err != nil {
		return nil, err
	}

	direct := stock.NewDirect(stock.DirectOptions{Sales: store, Variants: built})
	seller := stock.NewCombining(direct, stock.CombiningOptions{Wait: cfg.LockWait})
	shelves := shelves{store, ledger}
	auditor := audit.New(shelves, shelves, ledger)
	return httpapi.New(httpapi.Options{
		Seller:  observed.Seller(seller, httpapi.Outcomes(), httpapi.Outcome),
		Counter: shelves, Desk: desk{shelves, seller}, Ledger: ledger,
		Audit: func(ctx context.Context, saleID string, wait time.Duration, deep bool) (stock.Audit, error) {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			defer context.AfterFunc(a.drain, cancel)() // a minute's wait must not hold up the end
			return auditor.Audit(ctx, saleID, audit.Options{Wait: wait, Deep: deep})
		},
		Variants: cfg.Offered(), Lacking: cfg.Lacking(), AdminToken: cfg.AdminToken,
		Checks: []httpapi.Check{
			{Name: ping.name, Ping: ping.check, Required: true}, {Name: topics.name, Ping: topics.check}, {Name: schema.name, Ping: schema.check},
		},
		Draining: a.draining.Load,
		Logger:   a.logger,
	}), nil
}

// wireRelay gives the relay Redis connections of its own: its reads wait for
// entries, and would take those of the purchases.
func (a *API) wireRelay(keys rediskey.Keys, kafka kafkastock.Options, observed *metrics.Metrics) error {
	client, err := newRedis(a.config.RedisAddrs, 4*rediskey.Shards, a.config.RedisTimeout)
	if err != nil {
		return err
	}
	a.opened(client)
	locker, err := redislock.NewWatchdog(client, redislock.Options{TTL: relayTTL, Wait: relayTTL, Keys: lockKeys(keys)})
	if err != nil {
		return fmt.Errorf("app: %w", err)
	}
	a.opened(locker)
	publisher, err := kafkastock.NewPublisher(kafka)
	if err != nil {
		return fmt.Errorf("app: %w", err)
	}
	a.opened(publisher)
	outbox := redisstock.NewOutbox(client, redisstock.Options{Keys: keys})
	observed.Outbox(outbox, rediskey.Shards)
	a.relay, err = relay.New(relay.Options{Outbox: outbox, Publisher: publisher, Locker: locker, Logger: a.logger})
	if err != nil {
		return fmt.Errorf("app: %w", err)
	}
	return nil
}

func lockKeys(keys rediskey.Keys) func(string) (string, string) {
	return func(key string) (string, string) { return keys.Lock(key), keys.Fence(key) }
}

func (a *API) opened(closers ...io.Closer) { a.closers = append(a.closers, closers...) }

// Addr is the host:port that the HTTP interface listens on.
func (a *API) Addr() string { return a.listener.Addr().String() }

// AdminAddr is the same of metrics and pprof, empty without them.
func (a *API) AdminAddr() string { return a.admin.addr() }

// Run serves until ctx ends, then finishes: no new connections, the requests in
// progress are answered, the relay gives its shards back so that another
// process takes them over at once. What was sold by then is in the outbox, and
// needs this process no more. It takes Config.ShutdownTimeout at most, and a
// little; the error is nil unless something ended by itself or not in time.
func (a *API) Run(ctx context.Context) error {
	defer a.Close()
	background, stopBackground := context.WithCancel(context.Background())
	defer stopBackground()
	relayed := make(chan error, 1)
	go func() { relayed <- a.relay.Run(background) }()
	failed := make(chan error, 2)
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := a.admin.serve(background); err != nil {
			failed <- fmt.Errorf("app: admin listener: %w", err)
		}
	})
	served := make(chan struct{})
	serving.Go(func() {
		defer close(served)
		if err := a.server.Serve(a.listener); !a.draining.Load() {
			failed <- fmt.Errorf("app: listener: %w", err)
		}
	})
	a.logger.Info("the API listens", "addr", a.Addr(), "admin", a.AdminAddr())

	var ended error
	select {
	case <-ctx.Done():
	case ended = <-failed:
	}
	a.logger.Info("the API ends: finishing requests")
	a.draining.Store(true)
	a.endWaits()
	bounded, cancel := context.WithTimeout(context.Background(), a.config.ShutdownTimeout)
	defer cancel()
	if err := a.finish(bounded, served); err != nil {
		_ = a.server.Close()
		ended = errors.Join(ended, fmt.Errorf("app: requests were cut off: %w", err))
	}
	stopBackground()
	select {
	case err := <-relayed:
		ended = errors.Join(ended, err)
	case <-time.After(relayTTL): // its leases end by themselves then
		ended = errors.Join(ended, errors.New("app: the relay did not end in time"))
	}
	serving.Wait()
	a.logger.Info("the API has ended")
	return ended
}

// finish answers whoever has a connection already. Server.Shutdown alone would
// not: a request that it reads after its beginning is dropped without an answer,
// though the connection had been accepted before.
func (a *API) finish(ctx context.Context, served <-chan struct{}) error {
	_ = a.listener.Close()
	a.server.SetKeepAlivesEnabled(false) // closes the idle ones; the others end with their next answer
	<-served                             // no connection is added from here on
	answered := make(chan struct{})
	go func() {
		a.open.Wait()
		close(answered)
	}()
	select {
	case <-answered:
	case <-ctx.Done():
	}
	return a.server.Shutdown(ctx)
}

// count keeps open in step with the connections.
func (a *API) count(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		a.open.Add(1)
	case http.StateClosed, http.StateHijacked:
		a.open.Done()
	}
}

// Close gives back what NewAPI opened. Run does it by itself.
func (a *API) Close() error {
	a.endWaits()
	if a.listener != nil {
		_ = a.listener.Close()
	}
	if a.admin != nil {
		a.admin.close()
	}
	var errs []error
	for i := len(a.closers) - 1; i >= 0; i-- {
		errs = append(errs, a.closers[i].Close())
	}
	a.closers = nil
	return errors.Join(errs...)
}
