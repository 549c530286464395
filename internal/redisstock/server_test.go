package redisstock

import (
	"context"
	"crypto/rand"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Until internal/servers/servertest is there.
var realAddr = sync.OnceValues(func() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	l.Close()
	dir, err := os.MkdirTemp("", "redisstock-")
	if err != nil {
		return "", err
	}
	server = exec.Command("redis-server", "--port", port, "--bind", "127.0.0.1", "--dir", dir, "--appendonly", "yes", "--maxmemory-policy", "noeviction")
	if err := server.Start(); err != nil {
		return "", err
	}
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port})
	defer client.Close()
	for range 200 {
		if err = client.Ping(context.Background()).Err(); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return "127.0.0.1:" + port, err
})

var server *exec.Cmd

func TestMain(m *testing.M) {
	code := m.Run()
	if server != nil {
		server.Process.Kill()
	}
	os.Exit(code)
}

func realRedis(t testing.TB) (addr, prefix string) {
	t.Helper()
	addr, err := realAddr()
	if err != nil {
		t.Fatalf("redis-server: %v", err)
	}
	return addr, "test-" + strings.ToLower(rand.Text()[:12])
}
