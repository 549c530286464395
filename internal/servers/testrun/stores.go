package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"flashsale/internal/servers"
	"flashsale/internal/servers/servertest"
)

// store is one server of the run, or a program that tests call by themselves.
type store struct {
	name, env string
	available func() error
	open      func(dir string) servers.Server // nil: a program
	version   func() (string, error)          // of a program
	packages  []string                        // Debian's
	fetch     func(context.Context) error
	skips     bool // without it tests are skipped: there is no stand-in

	server servers.Server // nil: stand-ins
	found  string         // version of a program
	why    error          // there is no real one
}

func storesOfARun() []*store {
	return []*store{
		{
			name: servers.RedisName, env: servertest.EnvRedis, packages: []string{"redis-server"},
			available: servers.RedisAvailable, open: servers.Redis,
		},
		{
			name: servers.SQLName, env: servertest.EnvSQL, packages: []string{"mariadb-server"},
			available: servers.MariaDBAvailable,
			open:      func(dir string) servers.Server { return servers.MariaDB(dir) },
		},
		{
			name: servers.KafkaName, env: servertest.EnvKafka, packages: []string{"default-jre-headless", "maven"},
			available: servers.KafkaAvailable, open: servers.Kafka, fetch: servers.FetchKafka,
		},
		{
			name: servers.EtcdName, env: servertest.EnvEtcd, packages: []string{"etcd-server"},
			available: servers.EtcdAvailable, open: servers.Etcd, skips: true,
		},
		{
			name: servers.ZooKeeperName, env: servertest.EnvZooKeeper, packages: []string{"default-jre-headless", "libzookeeper-java"},
			available: servers.ZooKeeperAvailable, open: servers.ZooKeeper, skips: true,
		},
		{
			name: servers.PromtoolName, packages: []string{"prometheus"},
			available: func() error { _, err := servers.Promtool(); return err }, version: servers.PromtoolVersion, skips: true,
		},
	}
}

// bringUp starts what is there, after it has installed what may be installed.
func bringUp(ctx context.Context, dir string, stores []*store, stdout io.Writer) {
	begin := time.Now()
	install(ctx, stdout, stores)
	var all sync.WaitGroup
	for _, s := range stores {
		all.Go(func() {
			if s.why = s.available(); s.why != nil {
				return
			}
			if s.open == nil {
				s.found, s.why = s.version()
				return
			}
			server := s.open(filepath.Join(dir, s.name))
			if s.why = server.Start(ctx); s.why == nil {
				s.server = server
			}
		})
	}
	all.Wait()
	for _, s := range stores {
		if s.server != nil {
			fmt.Fprintf(stdout, "testrun: %-9s %s at %s\n", s.name, s.server.Version(), s.server.Addr())
			continue
		}
		if s.found != "" {
			fmt.Fprintf(stdout, "testrun: %-9s %s\n", s.name, s.found)
			continue
		}
		fmt.Fprintf(stdout, "testrun: %-9s %s, %s: %v\n", s.name, s.lack(), s.instead(), s.why)
		if s.available() != nil {
			fmt.Fprintf(stdout, "testrun: %-9s this installs it: make deps\n", s.name)
		}
	}
	fmt.Fprintf(stdout, "testrun: servers ready after %v\n", time.Since(begin).Round(10*time.Millisecond))
}

// lack is what there is not.
func (s *store) lack() string {
	if s.open == nil {
		return "NOT FOUND"
	}
	return "NO REAL SERVER"
}

// instead is what happens to tests that want a real one and have none.
func (s *store) instead() string {
	if s.skips {
		return "tests that need it are SKIPPED"
	}
	return "tests get a stand-in"
}

// value is what the tests find in the environment.
func (s *store) value() string {
	if s.server == nil {
		return servertest.Embedded
	}
	if database, ok := s.server.(servers.Database); ok {
		return database.DSN()
	}
	return s.server.Addr()
}

// firstLine keeps a log out of a summary.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}
