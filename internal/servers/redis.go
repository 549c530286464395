package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// RedisAvailable says whether Redis can start here: nil, or what is missing.
func RedisAvailable() error {
	_, err := find("redis-server", "valkey-server")
	return err
}

// Redis is a redis-server of its own whose files live in dir.
//
// It appends each write to its log before it answers, so that what was answered
// survives a SIGKILL. It leaves the fsync to the system: tests kill processes,
// not machines, and with everysec Redis may put off the write itself while an
// fsync runs, which is just what a test with a SIGKILL must not meet.
func Redis(dir string) Server { return redisProcess(dir, "redis-server", "valkey-server") }

// RedisBinary is the same from a given program, like another version or Valkey.
func RedisBinary(dir, path string) Server { return redisProcess(dir, path) }

func redisProcess(dir string, names ...string) Server {
	dir = absolute(dir)
	p := &process{name: RedisName, dir: dir, wants: 1}
	p.command = func() (*exec.Cmd, error) {
		binary, err := find(names...)
		if err != nil {
			return nil, err
		}
		// Options instead of a file: no configuration of this machine is read.
		return exec.Command(binary,
			"--bind", "127.0.0.1", "--port", strconv.Itoa(p.ports[0]), "--dir", dir,
			"--daemonize", "no", "--logfile", "",
			"--appendonly", "yes", "--appendfsync", "no", "--save", "",
			"--maxmemory-policy", "noeviction"), nil
	}
	p.probe = func(ctx context.Context, pid int) (string, error) {
		addr := loopback(p.ports[0])
		version, err := probeRedis(ctx, []string{addr}, pid)
		if err == nil {
			endWithoutReplicas(ctx, addr)
		}
		return version, err
	}
	return p
}

// endWithoutReplicas keeps Redis from waiting for replicas that lag before it
// ends: tests cut them off. An option of the command line would keep a Redis
// before version 7 from starting; it doesn't wait either.
func endWithoutReplicas(ctx context.Context, addr string) {
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer client.Close()
	_ = client.ConfigSet(ctx, "shutdown-timeout", "0").Err()
}

// probeRedis answers once Redis has loaded its data. A pid of 0 accepts any.
func probeRedis(ctx context.Context, addrs []string, pid int) (string, error) {
	// go-redis logs each refused connection; a plain one finds out quietly.
	conn, err := (&net.Dialer{Timeout: 2 * time.Second}).DialContext(ctx, "tcp", addrs[0])
	if err != nil {
		return "", err
	}
	conn.Close()
	client := redis.NewUniversalClient(&redis.UniversalOptions{
		Addrs: addrs, MaxRetries: -1, DialTimeout: 2 * time.Second, ReadTimeout: 2 * time.Second,
	})
	defer client.Close()
	if err := client.Ping(ctx).Err(); err != nil { // LOADING is an error too
		return "", err
	}
	info, err := client.Info(ctx, "server").Result()
	if _, refused := errors.AsType[redis.Error](err); refused && pid == 0 { // it answers, but doesn't say what it is
		return "Redis of an unknown version", nil
	}
	if err != nil {
		return "", err
	}
	if got := field(info, "process_id"); pid != 0 && got != strconv.Itoa(pid) {
		return "", fmt.Errorf("%s is answered by process %s", addrs[0], got)
	}
	if version := field(info, "valkey_version"); version != "" {
		return "valkey-server " + version, nil
	}
	return "redis-server " + field(info, "redis_version"), nil
}

// field finds a value in the reply to INFO.
func field(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// find looks for a program under each of its names. Debian keeps servers out
// of an ordinary user's PATH, Homebrew out of everybody's.
func find(names ...string) (string, error) {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
		for _, folder := range []string{"/usr/sbin", "/usr/local/sbin", "/usr/local/bin", "/opt/homebrew/bin"} {
			if path, err := exec.LookPath(filepath.Join(folder, name)); err == nil {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("%s is not installed", names[0])
}

func absolute(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		return abs
	}
	return dir
}
