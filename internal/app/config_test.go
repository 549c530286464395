package app

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestDefaultsAreAllowed(t *testing.T) {
	for _, p := range []Program{APIProgram, SyncerProgram} {
		c, warnings, err := ParseConfig(p, nil, nil, io.Discard)
		if err != nil || warnings != nil {
			t.Errorf("%s: %v %v", p.Name, err, warnings)
		}
		if p.Name == "api" && (c.LockTTL != 30*time.Second || c.LockWait != 2*time.Second || c.Prefix != "fs") {
			t.Errorf("got %+v", c)
		}
		if d := c.withDefaults(); p.Name == "api" && (d.LockTTL != c.LockTTL || d.LockWait != c.LockWait || d.Prefix != c.Prefix || d.ShutdownTimeout != c.ShutdownTimeout) {
			t.Errorf("two sets of defaults: %+v, %+v", c, d)
		}
	}
}

func TestFlagOverridesVariableOverridesDefault(t *testing.T) {
	c, _, err := ParseConfig(APIProgram, []string{"--lock-ttl=5s", "-prefix", "b"},
		[]string{"FLASHSALE_LOCK_TTL=nonsense", "FLASHSALE_LOCK_WAIT=1s", "FLASHSALE_PREFIX=a", "FLASHSALE_LISTEN=", "HOME=/"}, io.Discard)
	if err != nil || c.LockTTL != 5*time.Second || c.LockWait != time.Second || c.Prefix != "b" || c.Listen != "127.0.0.1:8080" {
		t.Errorf("got %+v, %v", c, err)
	}
}

func TestFlagOfAToggleNeedsNoValue(t *testing.T) {
	for _, test := range []struct {
		args, environ []string
		want          bool
	}{
		{nil, nil, false},
		{[]string{"--allow-broken-locks", "--prefix=b"}, nil, true},
		{[]string{"--allow-broken-locks=false"}, []string{"FLASHSALE_ALLOW_BROKEN_LOCKS=true"}, false},
		{nil, []string{"FLASHSALE_ALLOW_BROKEN_LOCKS=true"}, true},
	} {
		c, _, err := ParseConfig(APIProgram, test.args, test.environ, io.Discard)
		if err != nil || c.AllowBrokenLocks != test.want {
			t.Errorf("%q %q: allowed %v, %v", test.args, test.environ, c.AllowBrokenLocks, err)
		}
	}
}

func TestEverythingWrongIsNamedAtOnce(t *testing.T) {
	environ := []string{"FLASHSALE_LISTEN=8080", "FLASHSALE_ADMIN_LISTEN=x", "FLASHSALE_REDIS_ADDRS=redis://u:hunter2@h:1/abc", "FLASHSALE_KAFKA_BROKERS=kafka", "FLASHSALE_MYSQL_DSN=sqlite:x.db",
		"FLASHSALE_REDLOCK_ADDRS=redis://u:hunter2@h:1", "FLASHSALE_ETCD_ENDPOINTS=etcd", "FLASHSALE_ZOOKEEPER_ADDRS=a:1,b",
		"FLASHSALE_ADMIN_TOKEN=hunter2", "FLASHSALE_LOCK_TTL=30", "FLASHSALE_LOCK_WAIT=0s", "FLASHSALE_ALLOW_BROKEN_LOCKS=1", "FLASHSALE_PREFIX=A", "FLASHSALE_SHUTDOWN_TIMEOUT=1h", "FLASHSALE_LOG_FORMAT=xml", "FLASHSALE_LOG_LEVEL=loud"}
	_, _, err := ParseConfig(APIProgram, nil, environ, io.Discard)
	if err == nil {
		t.Fatal("no error")
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != len(environ) || len(environ) != len(settings) {
		t.Errorf("%d complaints about %d values of %d settings:\n%v", len(lines), len(environ), len(settings), err)
	}
	for i, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		s := settings[i]
		if !strings.Contains(lines[i], name) || !strings.Contains(lines[i], s.allowed) || strings.Contains(value, "hunter2") == strings.Contains(lines[i], value) {
			t.Errorf("%s: %s", entry, lines[i])
		}
	}
}

func TestWrongValues(t *testing.T) {
	for variable, values := range map[string][]string{
		"LISTEN":             {"127.0.0.1", ":x", ":65536", "a:b:c", "http://x:1"},
		"REDIS_ADDRS":        {"x", "redis://", "redis://a:1,b:1", "http://a:1", "a:0", ":6379", "u:p@h:1", "a:1,,b:2", "redis://u:p@h:1/abc", "redis://h:1/0/1", "redis://h:99999", "redis://h:1?nonsense=1", "unix:///run/redis"},
		"KAFKA_BROKERS":      {"x", "a:1,b", "a:1,"},
		"MYSQL_DSN":          {"x", "user@tcp(h:1)/", "sqlite:x", "mysql://u:p@h/db"},
		"ADMIN_TOKEN":        {"short", "with a space", "ünïcödé-tokens", strings.Repeat("x", 257)},
		"LOCK_TTL":           {"30", "-1s", "99ms", "11m", "1e3"},
		"ALLOW_BROKEN_LOCKS": {"1", "yes", "True"},
		"PREFIX":             {"-a", "a_b", "a:b", "{a}", strings.Repeat("a", 33)},
		"REDLOCK_ADDRS":      {"a:1,b:1", "a:1,b:1,a:1", "a:1,b:1,c", "a:1,b:1,c:1,"},
	} {
		for _, value := range values {
			if _, _, err := ParseConfig(APIProgram, nil, []string{envPrefix + variable + "=" + value}, io.Discard); err == nil {
				t.Errorf("%s=%q is allowed", variable, value)
			}
		}
	}
}

func TestGoodValues(t *testing.T) {
	for variable, values := range map[string][]string{
		"LISTEN":        {":8080", "[::1]:0", "localhost:1"},
		"ADMIN_LISTEN":  {"off", ":0"},
		"REDIS_ADDRS":   {"a:1", "redis:6379", "a:1, b:2", "redis://u:p@h:1/2", "rediss://h:1", "redis://h", "redis://[::1]:1/0"},
		"MYSQL_DSN":     {"u:p@tcp(h:1)/db?parseTime=true", "u@unix(/run/x.sock)/db"},
		"KAFKA_BROKERS": {"a:1,b:2"},
		"REDLOCK_ADDRS": {"a:1,b:1,c:1", "redis://u:p@a:1, redis://u:p@b:1, redis://u:p@c:1"},
	} {
		for _, value := range values {
			if _, _, err := ParseConfig(APIProgram, nil, []string{envPrefix + variable + "=" + value}, io.Discard); err != nil {
				t.Errorf("%s=%q: %v", variable, value, err)
			}
		}
	}
}

func TestUnknownVariablesFlagsAndArguments(t *testing.T) {
	_, warnings, err := ParseConfig(SyncerProgram, nil, []string{"FLASHSALE_LOCKTTL=1s", "FLASHSALE_LOCK_TTL=1s", "FLASHSALE_LISTEN=nonsense"}, io.Discard)
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "FLASHSALE_LOCKTTL") {
		t.Errorf("got %v, %v", warnings, err)
	}
	for _, args := range [][]string{{"--nonsense"}, {"serve"}, {"--lock-ttl"}} {
		if _, _, err := ParseConfig(APIProgram, args, nil, io.Discard); err == nil {
			t.Errorf("%v is allowed", args)
		}
	}
	if _, _, err := ParseConfig(SyncerProgram, []string{"--lock-ttl=1s"}, nil, io.Discard); err == nil {
		t.Error("the syncer has no lock")
	}
}

func TestHelpListsEverySetting(t *testing.T) {
	var out bytes.Buffer
	if _, _, err := ParseConfig(APIProgram, []string{"--help"}, nil, &out); !errors.Is(err, ErrHelp) {
		t.Fatalf("got %v", err)
	}
	for _, s := range settings {
		if !slices.ContainsFunc([]string{s.env()}, func(n string) bool { return strings.Contains(out.String(), n) }) ||
			!strings.Contains(out.String(), "--"+s.flag()) || !strings.Contains(out.String(), s.allowed) {
			t.Errorf("%s is missing", s.env())
		}
	}
}
