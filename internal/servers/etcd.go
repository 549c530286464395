package servers

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// EtcdAvailable says whether etcd can start here: nil, or what is missing.
func EtcdAvailable() error {
	_, err := find("etcd")
	return err
}

// Etcd is an etcd of its own, a cluster of one, whose files live in dir. Shorter
// heartbeats than usual make it lead sooner after a start.
func Etcd(dir string) Server {
	dir = absolute(dir)
	member := rand.Text() // tells it from another's etcd
	p := &process{name: EtcdName, dir: dir, wants: 2}
	p.command = func() (*exec.Cmd, error) {
		binary, err := find("etcd")
		if err != nil {
			return nil, err
		}
		client, peer := "http://"+loopback(p.ports[0]), "http://"+loopback(p.ports[1])
		return exec.Command(binary,
			"--name", member, "--data-dir", filepath.Join(dir, "data"),
			"--listen-client-urls", client, "--advertise-client-urls", client,
			"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", member+"="+peer,
			"--heartbeat-interval", "20", "--election-timeout", "200",
			"--logger", "zap", "--log-level", "error"), nil
	}
	p.probe = func(ctx context.Context, _ int) (string, error) {
		return probeEtcd(ctx, loopback(p.ports[0]), member)
	}
	return p
}

// probeEtcd answers once etcd has a leader. An empty member accepts any. It
// speaks the HTTP form of etcd's interface, which takes no client library.
func probeEtcd(ctx context.Context, addr, member string) (string, error) {
	var members struct{ Members []struct{ Name string } }
	if err := askEtcd(ctx, http.MethodPost, "http://"+addr+"/v3/cluster/member/list", &members); err != nil {
		return "", err
	}
	if member != "" && !slices.ContainsFunc(members.Members, func(m struct{ Name string }) bool { return m.Name == member }) {
		return "", fmt.Errorf("%s is answered by the cluster %v", addr, members.Members)
	}
	var health struct{ Health string }
	if err := askEtcd(ctx, http.MethodGet, "http://"+addr+"/health", &health); err != nil {
		return "", err
	}
	var version struct{ Etcdserver string }
	if err := askEtcd(ctx, http.MethodGet, "http://"+addr+"/version", &version); err != nil {
		return "", err
	}
	if health.Health != "true" {
		return "", fmt.Errorf("%s has no leader", addr)
	}
	return "etcd " + version.Etcdserver, nil
}

func askEtcd(ctx context.Context, method, url string, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader("{}"))
	if err != nil {
		return err
	}
	request.Close = true // no connection stays behind
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, response.Status)
	}
	return json.NewDecoder(io.LimitReader(response.Body, 1<<20)).Decode(answer)
}
