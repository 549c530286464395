package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"flashsale/deploy"
	"flashsale/internal/app"
	"flashsale/internal/catalogue"
	"flashsale/internal/servers"
	"flashsale/internal/stock"
)

const (
	startTimeout = 60 * time.Second
	closeTimeout = 30 * time.Second

	redlockNodes = 5

	// The stand-in for Redis runs a script a tenth as fast: with the usual 5 to
	// 15 ms, a crowd that polls for a lock leaves its holder no turn, and on a
	// busy machine a turn takes longer than a Redis may take to answer.
	standInPollMin = 200 * time.Millisecond
	standInPollMax = 600 * time.Millisecond
	standInTimeout = 10 * time.Second
)

// stackOptions are the flags that demo and up share. An empty server is a
// stand-in within this process.
type stackOptions struct {
	redis, kafka, mysql string
	redlock             string // empty: five stand-ins, beside the one for Redis
	etcd, zookeeper     string // no stand-ins for these
	listen              string
}

func (o *stackOptions) addFlags(f *pflag.FlagSet) {
	f.StringVar(&o.redis, "redis", "", "Redis to use instead of the stand-in, host:port, several separated by commas")
	f.StringVar(&o.kafka, "kafka", "", "Kafka to use instead of the stand-in, host:port, several separated by commas")
	f.StringVar(&o.mysql, "mysql", "", "MySQL to use instead of the stand-in, user:password@tcp(host:port)/database")
	f.StringVar(&o.redlock, "redlock", "", "independent Redis servers for the variant redlock, at least three host:port with commas; beside the stand-in for Redis there are five more")
	f.StringVar(&o.etcd, "etcd", "", "etcd for the variant that needs it, host:port, several separated by commas; there is no stand-in")
	f.StringVar(&o.zookeeper, "zookeeper", "", "ZooKeeper for the variant that needs it, host:port, several separated by commas; there is no stand-in")
	f.StringVar(&o.listen, "listen", "127.0.0.1:8080", "address of the API; when it is busy, a free port is taken")
}

// check refuses what API and syncer would refuse, but for a form of address that
// can't be told from several.
func (o stackOptions) check() error {
	if strings.Contains(o.redis, "//") {
		return usage("--redis=%q is not allowed: want host:port, several with commas", o.redis)
	}
	_, err := o.given()
	return err
}

// given are the settings that the flags amount to, under the rules of
// the API and the syncer.
func (o stackOptions) given() (app.Config, error) {
	return installation{redis: o.redis, kafka: o.kafka, mysql: o.mysql, redlock: o.redlock, etcd: o.etcd, zookeeper: o.zookeeper, listen: o.listen}.config(func(string) string { return "" })
}

// stack is a whole installation in this process.
type stack struct {
	url        string
	metrics    [2]string // addresses of the API's and the syncer's
	adminToken string

	redis, kafka servers.Server
	sql          servers.Database
	nodes        []servers.Server // of redlock, when they are stand-ins
	locks        []servers.Server // that were given, and hold nothing but locks
	config       app.Config
	tools        *app.Installation
	listener     net.Listener // open from the start, so that nobody else gets the port
	listening    string       // what is to be said about the address
	sales        []stock.Sale
	salePrefix   string   // of every sale, when they stand in a database that was given
	made         []string // sale IDs that may stand in the database
	dir          string
	unhurried    func() // ends what removes dir on a second signal

	stopAll context.CancelFunc
	running []*component
	failed  chan error // the first component that ended by itself
	logger  *slog.Logger
}

// component is the API or the syncer.
type component struct {
	name string
	done chan error
}

// startStack brings everything up, or nothing.
func startStack(ctx context.Context, o stackOptions, stderr io.Writer) (_ *stack, err error) {
	name := strings.ToLower(rand.Text())[:8]
	s := &stack{
		adminToken: strings.ToLower(rand.Text()),
		failed:     make(chan error, 2),
		logger:     slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	}
	defer func() {
		if err != nil {
			err = s.closeAfter(err)
		}
	}()
	start, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()

	if s.dir, err = os.MkdirTemp("", "flashsale-demo-"); err != nil {
		return nil, fmt.Errorf("no folder for stand-ins (TMPDIR says where it is made): %w", err)
	}
	s.unhurried = removeWhenHurried(ctx, s.dir)
	s.choose(o, name)
	for _, server := range slices.Concat(s.servers(), s.nodes, s.locks) {
		if err := server.Start(start); err != nil {
			return nil, err
		}
	}
	if err := s.configure(o, name); err != nil {
		return nil, err
	}
	if err := s.prepare(start); err != nil {
		return nil, err
	}
	return s, s.run(ctx, start)
}

// choose takes what is given, and a stand-in for the rest.
func (s *stack) choose(o stackOptions, name string) {
	s.redis, s.kafka, s.sql = servers.EmbeddedRedis(), servers.EmbeddedKafka(filepath.Join(s.dir, "kafka")), servers.SQLite(filepath.Join(s.dir, "flashsale.db"))
	if o.redis == "" && o.redlock == "" {
		for range redlockNodes {
			s.nodes = append(s.nodes, servers.EmbeddedRedis())
		}
	}
	if o.redis != "" {
		s.redis = servers.Given(servers.RedisName, strings.ReplaceAll(o.redis, " ", ""))
	}
	if o.kafka != "" {
		s.kafka = servers.Given(servers.KafkaName, strings.ReplaceAll(o.kafka, " ", ""))
	}
	if o.etcd != "" {
		s.locks = append(s.locks, servers.Given(servers.EtcdName, strings.ReplaceAll(o.etcd, " ", "")))
	}
	if o.zookeeper != "" {
		s.locks = append(s.locks, servers.Given(servers.ZooKeeperName, strings.ReplaceAll(o.zookeeper, " ", "")))
	}
	if o.mysql != "" {
		s.sql = servers.GivenSQL(o.mysql)
		s.salePrefix = "demo-" + name + "-"
	}
}

func (s *stack) configure(o stackOptions, name string) (err error) {
	s.config = app.Config{
		Prefix:       "fs-demo-" + name,
		RedisAddrs:   strings.Split(s.redis.Addr(), ","),
		KafkaBrokers: strings.Split(s.kafka.Addr(), ","),
		MySQLDSN:     s.sql.DSN(),
		AdminToken:   s.adminToken,
		AdminListen:  "127.0.0.1:0", // of API and syncer, a port each

		AllowBrokenLocks: true, // this is the place to watch them
	}
	given, err := o.given()
	if err != nil {
		return err
	}
	s.config.EtcdEndpoints, s.config.ZooKeeperAddrs = given.EtcdEndpoints, given.ZooKeeperAddrs
	s.config.RedlockAddrs = given.RedlockAddrs
	for _, node := range s.nodes {
		s.config.RedlockAddrs = append(s.config.RedlockAddrs, node.Addr())
	}
	if !s.redis.Real() {
		s.config.RedisStandIn = true
		s.config.PollMin, s.config.PollMax, s.config.RedisTimeout = standInPollMin, standInPollMax, standInTimeout
	}
	s.listener, s.listening, err = listen(o.listen)
	s.config.Listener = s.listener
	return err
}

// prepare makes tables and topics, and loads the catalogue.
func (s *stack) prepare(ctx context.Context) (err error) {
	if s.tools, err = app.OpenInstallation(s.config); err != nil {
		return err
	}
	if _, err := s.tools.MigrateSchema(ctx); err != nil {
		return err
	}
	if _, err := s.tools.MigrateTopics(ctx); err != nil {
		return err
	}
	return s.preload(ctx)
}

func (s *stack) servers() []servers.Server { return []servers.Server{s.redis, s.kafka, s.sql} }

// preload loads the delivered catalogue, under names of its own.
func (s *stack) preload(ctx context.Context) error {
	sales, err := catalogue.Parse(bytes.NewReader(deploy.Catalogue), s.config.Offered(), s.config.Lacking())
	if err != nil {
		return err
	}
	for i := range sales {
		sales[i].ID = s.saleID(sales[i].ID)
	}
	s.sales = sales
	_, err = s.tools.Preload(ctx, sales, false)
	return err
}

// saleID names a sale of this stack, and remembers that it is to be removed.
func (s *stack) saleID(name string) string {
	id := s.salePrefix + name
	s.made = append(s.made, id)
	return id
}

// run starts the API, with its relay, and the syncer.
func (s *stack) run(ctx, start context.Context) error {
	running, stop := context.WithCancel(context.WithoutCancel(ctx)) // closeAfter ends it, after the demo has ended
	s.stopAll = stop
	api, err := app.NewAPI(start, s.config, s.logger)
	if err != nil {
		return err
	}
	s.start(running, "api", api.Run)
	syncer, err := app.NewSyncer(start, s.config, s.logger)
	if err != nil {
		return err
	}
	s.start(running, "syncer", syncer.Run)
	s.url = "http://" + api.Addr()
	s.metrics = [2]string{api.AdminAddr(), syncer.AdminAddr()}
	return nil
}

func (s *stack) start(ctx context.Context, name string, run func(context.Context) error) {
	c := &component{name: name, done: make(chan error, 1)}
	s.running = append(s.running, c)
	go func() {
		err := run(ctx)
		if ctx.Err() == nil {
			s.failed <- fmt.Errorf("%s ended: %w", name, reasonOf(err))
		}
		c.done <- err
	}()
}

func reasonOf(err error) error {
	if err == nil {
		return errors.New("without a reason")
	}
	return err
}

// cause is why a measurement failed: the component that ended, if one did.
func (s *stack) cause(err error) error {
	select {
	case ended := <-s.failed:
		return ended
	default:
		return err
	}
}

// closeAfter stops everything and removes what the demo made on servers that it
// was given. It is not hurried by a context that ended: that is when it is
// called. Its result holds err and what went wrong here.
func (s *stack) closeAfter(err error) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	errs := []error{err}
	if s.stopAll != nil {
		s.stopAll()
	}
	for _, c := range s.running {
		select {
		case err := <-c.done:
			if err != nil && !errors.Is(err, context.Canceled) {
				errs = append(errs, fmt.Errorf("stop the %s: %w", c.name, err))
			}
		case <-ctx.Done():
			errs = append(errs, fmt.Errorf("the %s did not stop", c.name))
		}
	}
	if s.listener != nil {
		_ = s.listener.Close() // most often the API has done so
	}
	if s.tools != nil {
		errs = append(errs, s.remove(ctx), s.tools.Close())
	}
	for _, server := range slices.Concat(s.servers(), s.nodes) {
		if server != nil {
			errs = append(errs, server.Stop(ctx))
		}
	}
	if s.dir != "" {
		errs = append(errs, os.RemoveAll(s.dir))
		s.unhurried()
	}
	return errors.Join(errs...)
}

// removeWhenHurried removes a folder when the process gets another signal while it
// is ending, which then ends it at once.
func removeWhenHurried(ctx context.Context, dir string) (stop func()) {
	done := make(chan struct{})
	forget := context.AfterFunc(ctx, func() {
		second := make(chan os.Signal, 1)
		signal.Notify(second, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
		defer signal.Stop(second)
		select {
		case <-second:
			_ = os.RemoveAll(dir)
			os.Exit(exitInterrupted)
		case <-done:
		}
	})
	return func() {
		forget()
		close(done)
	}
}

// remove deletes what was made on servers that are somebody else's. Stand-ins go
// as a whole.
func (s *stack) remove(ctx context.Context) error {
	if len(s.given()) == 0 {
		return nil
	}
	if err := s.tools.Remove(ctx, s.made); err != nil {
		return fmt.Errorf("not everything that is named %s could be removed: %w", s.config.Prefix, err)
	}
	return nil
}

// listen opens the wanted address or, when that is busy, a free port beside it
// with a word about that.
func listen(wanted string) (listener net.Listener, remark string, err error) {
	listener, err = net.Listen("tcp", wanted)
	if errors.Is(err, syscall.EADDRINUSE) {
		host, _, splitErr := net.SplitHostPort(wanted)
		if splitErr != nil {
			return nil, "", splitErr
		}
		remark = " (" + wanted + " is busy)"
		listener, err = net.Listen("tcp", net.JoinHostPort(host, "0"))
	}
	if err != nil {
		return nil, "", fmt.Errorf("--listen: %w", err)
	}
	return listener, remark, nil
}
