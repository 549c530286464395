package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"flashsale/internal/servers/child"
)

// errNoRedis: there is nothing to measure with.
var errNoRedis = errors.New("redis-server is not installed (make deps)")

// server is a redis-server of this run's own, that keeps nothing on disk.
//
// It is started here and not by internal/servers, since that would bring the
// embedded stand-ins and all that they need into this module.
type server struct {
	addr, version, dir string
	child              *child.Child
}

func startRedis(ctx context.Context) (*server, error) {
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		if binary, err = exec.LookPath("/usr/sbin/redis-server"); err != nil {
			return nil, errNoRedis
		}
	}
	var last error
	for range 3 { // somebody may be quicker to take the port
		s, err := launch(ctx, binary)
		if err == nil {
			return s, nil
		}
		last = err
	}
	return nil, last
}

func launch(ctx context.Context, binary string) (*server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &server{addr: l.Addr().String()}
	_, port, _ := net.SplitHostPort(s.addr)
	l.Close()
	if s.dir, err = os.MkdirTemp("", "peerbench-redis-"); err != nil {
		return nil, err
	}
	s.child, err = child.Start(exec.Command(binary, "--bind", "127.0.0.1", "--port", port, "--dir", s.dir,
		"--daemonize", "no", "--save", "", "--appendonly", "no", "--logfile", s.dir+"/log"))
	if err != nil {
		os.RemoveAll(s.dir)
		return nil, err
	}
	if err := s.await(ctx); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// await returns when the server, and no other, answers.
func (s *server) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	redis.SetLogger(quiet{})
	client := redis.NewClient(&redis.Options{Addr: s.addr, MaxRetries: -1, DialerRetries: 1})
	defer client.Close()
	for pause := time.NewTicker(20 * time.Millisecond); ; {
		info, err := client.Info(ctx, "server").Result()
		if err == nil {
			if !strings.Contains(info, fmt.Sprintf("process_id:%d\r\n", s.child.Pid())) {
				return errors.New("another server has taken the port")
			}
			_, rest, _ := strings.Cut(info, "redis_version:")
			s.version, _, _ = strings.Cut(rest, "\r\n")
			return nil
		}
		select {
		case <-pause.C:
		case <-s.child.Done():
			return fmt.Errorf("redis-server ended at once: %v", s.child.Err())
		case <-ctx.Done():
			return fmt.Errorf("redis-server doesn't answer: %w", err)
		}
	}
}

func (s *server) stop() {
	s.child.Kill()
	os.RemoveAll(s.dir)
}

type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}
