package app

import (
	"bytes"
	"log/slog"
	"net"
	"strings"
	"testing"
)

// A server of locks that is away is named with its setting when the API starts,
// and doesn't keep it from starting, like any other server.
func TestStartNamesLockServersThatAreAway(t *testing.T) {
	cfg := embedded(t)
	migrate(t, cfg)
	listener, err := net.Listen("tcp", "127.0.0.1:0") // a port that nobody has once it is closed
	if err != nil {
		t.Fatal(err)
	}
	away := listener.Addr().String()
	listener.Close()
	there, other := cfg.RedlockAddrs[0], cfg.RedlockAddrs[1]
	cfg.RedlockAddrs = []string{there, other, "redis://:secret@" + away + "/0"}
	cfg.EtcdEndpoints, cfg.ZooKeeperAddrs = []string{away}, []string{away}

	var log bytes.Buffer
	api, err := NewAPI(t.Context(), cfg, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer api.Close()
	for _, setting := range []string{"FLASHSALE_REDLOCK_ADDRS", "FLASHSALE_ETCD_ENDPOINTS", "FLASHSALE_ZOOKEEPER_ADDRS"} {
		if want := setting + "=" + away; !strings.Contains(log.String(), want) {
			t.Errorf("no %s in\n%s", want, log.String())
		}
	}
	if strings.Contains(log.String(), there) || strings.Contains(log.String(), "secret") {
		t.Errorf("names what is there, or a password:\n%s", log.String())
	}
}
