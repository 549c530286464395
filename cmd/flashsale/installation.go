package main

import (
	"errors"
	"io"
	"strings"

	"github.com/spf13/pflag"

	"flashsale/internal/app"
)

// installation says which one a command works on: by the variables that API and
// syncer read, under the same rules and with the same defaults, or by flags in
// their place. Of what holds nothing but locks, like etcd, and of an address to
// listen on only the demo has use.
type installation struct{ redis, kafka, mysql, redlock, etcd, zookeeper, listen, prefix string }

func (o *installation) addFlags(f *pflag.FlagSet) {
	f.StringVar(&o.redis, "redis", "", "where Redis is (default: FLASHSALE_REDIS_ADDRS, else 127.0.0.1:6379)")
	f.StringVar(&o.kafka, "kafka", "", "where Kafka is (default: FLASHSALE_KAFKA_BROKERS, else 127.0.0.1:9092)")
	f.StringVar(&o.mysql, "mysql", "", "where MySQL is, user:password@tcp(host:port)/database (default: FLASHSALE_MYSQL_DSN)")
	f.StringVar(&o.prefix, "prefix", "", "name of the installation (default: FLASHSALE_PREFIX, else fs)")
}

// offer are the variables that decide which variants an installation offers.
var offer = []string{"FLASHSALE_REDLOCK_ADDRS", "FLASHSALE_ETCD_ENDPOINTS", "FLASHSALE_ZOOKEEPER_ADDRS", "FLASHSALE_ALLOW_BROKEN_LOCKS"}

// config reads no variable but those of the flags and these: what a command
// doesn't use can't be wrong.
func (o installation) config(getenv func(string) string, more ...string) (app.Config, error) {
	var args, environ []string
	for _, s := range []struct{ given, theirs, variable string }{
		{o.redis, "redis-addrs", "FLASHSALE_REDIS_ADDRS"},
		{o.kafka, "kafka-brokers", "FLASHSALE_KAFKA_BROKERS"},
		{o.mysql, "mysql-dsn", "FLASHSALE_MYSQL_DSN"},
		{o.redlock, "redlock-addrs", ""},
		{o.etcd, "etcd-endpoints", ""},
		{o.zookeeper, "zookeeper-addrs", ""},
		{o.listen, "listen", ""},
		{o.prefix, "prefix", "FLASHSALE_PREFIX"},
	} {
		if s.given != "" {
			args = append(args, "--"+s.theirs+"="+s.given)
		}
		if value := getenv(s.variable); value != "" {
			environ = append(environ, s.variable+"="+value)
		}
	}
	for _, variable := range more {
		if value := getenv(variable); value != "" {
			environ = append(environ, variable+"="+value)
		}
	}
	cfg, _, err := app.ParseConfig(app.APIProgram, args, environ, io.Discard)
	if err != nil {
		return cfg, usageError{errors.New(ourFlags.Replace(err.Error()))}
	}
	return cfg, nil
}

// ourFlags names the flags as this program does.
var ourFlags = strings.NewReplacer("--redis-addrs=", "--redis=", "--kafka-brokers=", "--kafka=", "--mysql-dsn=", "--mysql=",
	"--redlock-addrs=", "--redlock=", "--etcd-endpoints=", "--etcd=", "--zookeeper-addrs=", "--zookeeper=")
