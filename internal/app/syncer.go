package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"flashsale/internal/kafkastock"
	"flashsale/internal/metrics"
	"flashsale/internal/sqlstock"
	"flashsale/internal/syncer"
)

// Syncer is the program that settles in the ledger what comes out of Kafka.
// Any number of them share the work.
type Syncer struct {
	logger *slog.Logger
	admin  *admin
	ledger *sqlstock.DB
	source *kafkastock.Source
	worker *syncer.Syncer
}

// NewSyncer finds out whether Kafka and the database fit. Either may be away,
// and is waited for; with the schema of another version, or without the topics,
// there is no Syncer. Run must be called, or Close.
func NewSyncer(ctx context.Context, cfg Config, logger *slog.Logger) (_ *Syncer, err error) {
	cfg = cfg.withDefaults()
	if err := wants("syncer", map[string]bool{"KafkaBrokers": len(cfg.KafkaBrokers) > 0, "MySQLDSN": cfg.MySQLDSN != ""}); err != nil {
		return nil, err
	}
	s := &Syncer{logger: logger}
	defer func() {
		if err != nil {
			_ = s.Close()
		}
	}()
	observed := metrics.New(Variants())
	if s.admin, err = newAdmin(cfg.AdminListen, observed.Handler(), logger); err != nil {
		return nil, err
	}
	if s.ledger, err = sqlstock.Open(cfg.MySQLDSN, sqlstock.Options{Logger: logger}); err != nil {
		return nil, fmt.Errorf("app: %w", err)
	}
	kafka := kafkastock.Options{Brokers: cfg.KafkaBrokers, Topics: kafkastock.Names(cfg.Prefix), Logger: logger}
	if s.source, err = kafkastock.NewSource(kafka); err != nil {
		return nil, fmt.Errorf("app: %w", err)
	}
	observed.Lag(s.source.Lag)
	batch := observed.Batches()
	s.worker, err = syncer.New(syncer.Options{
		Source: s.source, Ledger: observed.Settler(s.ledger), Logger: logger, Grace: cfg.ShutdownTimeout / 2,
		OnBatch: func(b syncer.Batch) {
			buried := 0
			for _, messages := range b.Buried {
				buried += messages
			}
			batch(b.Messages, buried)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("app: %w", err)
	}
	needed := []dependency{
		{"kafka", func(ctx context.Context) error { return kafkastock.Ping(ctx, kafka) }},
		{"sql", s.ledger.CheckSchema},
	}
	s.admin.mux.Handle("GET /readyz", ready(needed))
	if err := look(ctx, logger, needed...); err != nil {
		return nil, err
	}
	return s, nil
}

// AdminAddr is the host:port of metrics and pprof, empty without them.
func (s *Syncer) AdminAddr() string { return s.admin.addr() }

// Run works until ctx ends, then finishes the batch in hand and leaves the
// group, so that another syncer takes over at once.
func (s *Syncer) Run(ctx context.Context) error {
	defer s.Close()
	background, stop := context.WithCancel(context.Background())
	admin := make(chan error, 1)
	go func() { admin <- s.admin.serve(background) }()
	s.logger.Info("the syncer works", "admin", s.AdminAddr())
	err := s.worker.Run(ctx)
	stop()
	err = errors.Join(err, <-admin)
	s.logger.Info("the syncer has ended")
	return err
}

// Close gives back what NewSyncer opened. Run does it by itself.
func (s *Syncer) Close() error {
	if s.admin != nil {
		s.admin.close()
	}
	var errs []error
	if s.source != nil {
		errs = append(errs, s.source.Close())
	}
	if s.ledger != nil {
		errs = append(errs, s.ledger.Close())
	}
	return errors.Join(errs...)
}
