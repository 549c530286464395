package servers

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

const givenTimeout = 10 * time.Second

// Given is a server that somebody else runs at addrs, host:port separated by
// commas: any but SQL, by its name. Start finds out whether it answers;
// Stop and Kill do nothing.
func Given(name, addrs string) Server {
	g := &given{name: name, addr: addrs}
	g.probe = func(ctx context.Context) (string, error) {
		first, _, _ := strings.Cut(addrs, ",")
		first = strings.TrimSpace(first)
		switch name {
		case KafkaName:
			return "Kafka at " + addrs, probeKafka(ctx, first, "")
		case EtcdName:
			return probeEtcd(ctx, first, "")
		case ZooKeeperName:
			return probeZooKeeper(ctx, first, "")
		default:
			return probeRedis(ctx, strings.Split(addrs, ","), 0)
		}
	}
	return g
}

// GivenSQL is a MySQL or MariaDB that somebody else runs.
func GivenSQL(dsn string) Database {
	g := &given{name: SQLName, dsn: dsn}
	if config, err := mysql.ParseDSN(dsn); err == nil {
		g.addr = config.Addr
	}
	g.probe = func(ctx context.Context) (string, error) {
		db, err := openMySQL(dsn)
		if err != nil {
			return "", err
		}
		defer db.Close()
		var version string
		err = db.QueryRowContext(ctx, "SELECT VERSION()").Scan(&version)
		return sqlVersion(version), err
	}
	return g
}

type given struct {
	name, addr, dsn string
	version         string
	probe           func(ctx context.Context) (string, error)
}

func (g *given) Name() string               { return g.name }
func (g *given) Version() string            { return g.version }
func (g *given) Real() bool                 { return true }
func (g *given) Addr() string               { return g.addr }
func (g *given) DSN() string                { return g.dsn }
func (g *given) Stop(context.Context) error { return nil }
func (g *given) Kill()                      {}

func (g *given) Start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, givenTimeout)
	defer cancel()
	version, err := g.probe(ctx)
	if err != nil {
		return fmt.Errorf("servers: %s: %w", g.name, err)
	}
	g.version = version
	return nil
}
