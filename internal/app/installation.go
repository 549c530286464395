package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"flashsale/internal/audit"
	"flashsale/internal/kafkastock"
	"flashsale/internal/lock/mysqllock"
	"flashsale/internal/rediskey"
	"flashsale/internal/redisstock"
	"flashsale/internal/sqlstock"
	"flashsale/internal/stock"
	"flashsale/migrations"
)

// Installation is what the tools do to the stores of an installation, whether
// or not its API and syncer run. It connects at the first use of each store.
type Installation struct {
	redis   redis.UniversalClient
	counter *redisstock.Store
	ledger  *sqlstock.DB
	kafka   kafkastock.Options
	config  Config
	now     func() time.Time
}

// toolPool is the number of connections to Redis that a tool may have at once.
const toolPool = 4

// OpenInstallation uses prefix and addresses of cfg; a store without an address
// must not be used.
func OpenInstallation(cfg Config) (*Installation, error) {
	i := &Installation{config: cfg, kafka: kafkastock.Options{Brokers: cfg.KafkaBrokers, Topics: kafkastock.Names(cfg.Prefix)}, now: time.Now}
	if cfg.MySQLDSN != "" {
		ledger, err := sqlstock.Open(cfg.MySQLDSN, sqlstock.Options{})
		if err != nil {
			return nil, err
		}
		i.ledger = ledger
	}
	if len(cfg.RedisAddrs) > 0 {
		client, err := newRedis(cfg.RedisAddrs, toolPool, cfg.RedisTimeout)
		if err != nil {
			return nil, errors.Join(err, i.Close())
		}
		i.redis = client
		i.counter = redisstock.New(i.redis, redisstock.Options{Keys: rediskey.Keys{Prefix: cfg.Prefix}})
	}
	return i, nil
}

// Close gives the connections back.
func (i *Installation) Close() error {
	var errs []error
	if i.ledger != nil {
		errs = append(errs, i.ledger.Close())
	}
	if i.redis != nil {
		errs = append(errs, i.redis.Close())
	}
	return errors.Join(errs...)
}

// SchemaChange is what a migration did: nothing when From is To, and made the
// tables when From is 0.
type SchemaChange struct{ From, To int64 }

// MigrateSchema makes or upgrades the tables, MigrateTopics makes the topics
// that are missing and names them. Doing so again changes nothing.
func (i *Installation) MigrateSchema(ctx context.Context) (SchemaChange, error) {
	change := SchemaChange{migrations.Version, migrations.Version}
	var other *sqlstock.SchemaError
	if errors.As(i.ledger.CheckSchema(ctx), &other) {
		change.From = other.Have
	}
	return change, i.ledger.Migrate(ctx) // which says what else is wrong
}

func (i *Installation) MigrateTopics(ctx context.Context) (created []string, err error) {
	return kafkastock.CreateTopics(ctx, i.kafka)
}

// CheckSchema says whether the tables are those of this program, CheckTopics
// whether the topics are there.
func (i *Installation) CheckSchema(ctx context.Context) error { return i.ledger.CheckSchema(ctx) }
func (i *Installation) CheckTopics(ctx context.Context) error { return kafkastock.Ping(ctx, i.kafka) }

func (i *Installation) shelves() shelves { return shelves{i.counter, i.ledger} }

// Audit compares a sale's counter with the ledger.
func (i *Installation) Audit(ctx context.Context, saleID string, options audit.Options) (stock.Audit, error) {
	shelves := i.shelves()
	return audit.New(shelves, shelves, i.ledger).Audit(ctx, saleID, options)
}

// Remove deletes the installation's keys and topics, and these sales with their
// purchases. API and syncer must have ended. It goes on after an error.
func (i *Installation) Remove(ctx context.Context, saleIDs []string) error {
	return errors.Join(
		wrap("redis", i.counter.Purge(ctx)),
		wrap("kafka", kafkastock.DeleteTopics(ctx, i.kafka)),
		wrap("sql", i.ledger.DeleteSales(ctx, saleIDs)),
		wrap("sql", i.removeRows(ctx)))
}

// removeRows deletes the rows that were locks.
func (i *Installation) removeRows(ctx context.Context) error {
	if !needsMySQL.metBy(i.config) {
		return nil
	}
	rows, err := mysqllock.Open(i.config.MySQLDSN, mysqllock.Options{Prefix: i.config.Prefix + ":"})
	if err != nil {
		return err
	}
	return errors.Join(rows.Purge(ctx), rows.Close())
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("app: %s: %w", what, err)
}
