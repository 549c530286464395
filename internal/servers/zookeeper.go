package servers

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// zooKeeperJar is where Debian's package libzookeeper-java puts it; the jar
// names those that it needs.
const zooKeeperJar = "/usr/share/java/zookeeper.jar"

// ZooKeeperAvailable says whether ZooKeeper can start here: nil, or what is missing.
func ZooKeeperAvailable() error {
	if _, err := find("java"); err != nil {
		return err
	}
	if _, err := os.Stat(zooKeeperJar); err != nil {
		return fmt.Errorf("ZooKeeper is not installed: there is no %s", zooKeeperJar)
	}
	return nil
}

// ZooKeeper is an Apache ZooKeeper of its own, an ensemble of one, whose files
// live in dir. Sessions may be as short as 200 ms, for tests that wait for their
// end.
func ZooKeeper(dir string) Server {
	dir = absolute(dir)
	data := filepath.Join(dir, "data")
	p := &process{name: ZooKeeperName, dir: dir, wants: 1}
	p.command = func() (*exec.Cmd, error) {
		java, err := find("java")
		if err != nil {
			return nil, err
		}
		file := filepath.Join(dir, "zoo.cfg")
		text := strings.Join([]string{
			"dataDir=" + data, "clientPort=" + strconv.Itoa(p.ports[0]), "clientPortAddress=127.0.0.1",
			"tickTime=100", "minSessionTimeout=200", "maxSessionTimeout=60000", "maxClientCnxns=0",
			"admin.enableServer=false", "4lw.commands.whitelist=srvr,conf",
		}, "\n")
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return nil, err
		}
		// Without the fsync: tests kill processes, not machines.
		return exec.Command(java, "-Xms32m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
			"-Dzookeeper.forceSync=no", "-cp", zooKeeperJar, "org.apache.zookeeper.server.quorum.QuorumPeerMain", file), nil
	}
	p.probe = func(ctx context.Context, _ int) (string, error) {
		return probeZooKeeper(ctx, loopback(p.ports[0]), data)
	}
	return p
}

// probeZooKeeper answers once ZooKeeper serves the data in this folder. An empty
// folder accepts any.
func probeZooKeeper(ctx context.Context, addr, data string) (string, error) {
	server, err := fourLetters(ctx, addr, "srvr")
	if err != nil {
		return "", err
	}
	version, found := strings.CutPrefix(server, "Zookeeper version: ")
	if !found {
		return "", fmt.Errorf("%s answers %.100q", addr, server)
	}
	if data != "" {
		conf, err := fourLetters(ctx, addr, "conf")
		if err != nil {
			return "", err
		}
		if !strings.Contains(conf, "dataDir="+data+"/") && !strings.Contains(conf, "dataDir="+resolved(data)+"/") {
			return "", fmt.Errorf("%s is answered by another server: %.200q", addr, conf)
		}
	}
	version, _, _ = strings.Cut(version, "-")
	return "ZooKeeper " + version, nil
}

// fourLetters sends one of ZooKeeper's four-letter words, and returns the answer.
func fourLetters(ctx context.Context, addr, word string) (string, error) {
	conn, err := (&net.Dialer{Timeout: 2 * time.Second}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(2 * time.Second)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, word); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(io.LimitReader(conn, 1<<16))
	if err == nil && len(answer) == 0 {
		err = io.ErrUnexpectedEOF
	}
	return string(answer), err
}
