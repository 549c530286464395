package servers

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"
)

// Brokers usually refuse session timeouts below 6 s; a test that kills a
// consumer wants to see its partitions move sooner.
const minSessionTimeout = 500 * time.Millisecond

// Kafka is Apache Kafka: broker and controller in one process of its own whose
// files live in dir. Its jars are FetchKafka's.
func Kafka(dir string) Server {
	dir = absolute(dir)
	properties := filepath.Join(dir, "server.properties")
	p := &process{name: KafkaName, dir: dir, wants: 2}
	var clusterID string
	p.setup = func(ctx context.Context) error {
		clusterID = newClusterID()
		// The ports are not known yet, and formatting does not care.
		if err := os.WriteFile(properties, kafkaProperties(dir, 1, 2), 0o644); err != nil {
			return err
		}
		cmd, err := kafkaCommand("kafka.tools.StorageTool", "format", "-t", clusterID, "-c", properties)
		if err != nil {
			return err
		}
		return p.run(ctx, cmd)
	}
	p.command = func() (*exec.Cmd, error) {
		if err := os.WriteFile(properties, kafkaProperties(dir, p.ports[0], p.ports[1]), 0o644); err != nil {
			return nil, err
		}
		return kafkaCommand("kafka.Kafka", properties)
	}
	p.probe = func(ctx context.Context, _ int) (string, error) {
		return "Apache Kafka " + kafkaVersion(), probeKafka(ctx, loopback(p.ports[0]), clusterID)
	}
	return p
}

// kafkaCommand runs a class of Kafka. The small heap and the quick compiler are
// for a broker that lives for minutes.
func kafkaCommand(class string, args ...string) (*exec.Cmd, error) {
	java, err := find("java")
	if err != nil {
		return nil, err
	}
	jars, err := kafkaJars()
	if err != nil {
		return nil, err
	}
	return exec.Command(java, append([]string{
		"-Xms256m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-cp", filepath.Join(jars, "*"), class}, args...)...), nil
}

// kafkaProperties configures one node that is everything. The short broker
// session makes a restart after SIGKILL take 3 s instead of 12: until the old
// session has ended the controller takes the new broker for a doublet.
func kafkaProperties(dir string, port, controller int) []byte {
	return []byte(strings.Join([]string{
		"process.roles=broker,controller",
		"node.id=1",
		"listeners=PLAINTEXT://" + loopback(port) + ",CONTROLLER://" + loopback(controller),
		"advertised.listeners=PLAINTEXT://" + loopback(port),
		"controller.listener.names=CONTROLLER",
		"listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
		"controller.quorum.voters=1@" + loopback(controller),
		"log.dirs=" + filepath.ToSlash(filepath.Join(dir, "data")),
		"broker.session.timeout.ms=1500",
		"broker.heartbeat.interval.ms=300",
		"auto.create.topics.enable=false",
		"offsets.topic.num.partitions=1",
		"offsets.topic.replication.factor=1",
		"transaction.state.log.replication.factor=1",
		"transaction.state.log.min.isr=1",
		"share.coordinator.state.topic.replication.factor=1",
		"share.coordinator.state.topic.min.isr=1",
		"group.initial.rebalance.delay.ms=0",
		"group.min.session.timeout.ms=" + strconv.FormatInt(minSessionTimeout.Milliseconds(), 10),
		"",
	}, "\n"))
}

// probeKafka answers when the broker has registered, leads what it has, and
// coordinates groups: right after a restart it is there without leading. The
// question for a coordinator makes the broker create its topic for offsets, so
// that the first consumer does not wait for it. An empty clusterID accepts any.
func probeKafka(ctx context.Context, addr, clusterID string) error {
	transport := &kafka.Transport{DialTimeout: 2 * time.Second}
	defer transport.CloseIdleConnections()
	client := &kafka.Client{Addr: kafka.TCP(addr), Timeout: 2 * time.Second, Transport: transport}
	metadata, err := client.Metadata(ctx, &kafka.MetadataRequest{})
	if err != nil {
		return err
	}
	if clusterID != "" && metadata.ClusterID != clusterID {
		return fmt.Errorf("%s is answered by cluster %s", addr, metadata.ClusterID)
	}
	if len(metadata.Brokers) == 0 {
		return fmt.Errorf("%s has no broker yet", addr)
	}
	if clusterID != "" { // of a given Kafka, the topics may be anybody's
		if err := leaderless(metadata.Topics); err != nil {
			return err
		}
	}
	coordinator, err := client.FindCoordinator(ctx, &kafka.FindCoordinatorRequest{
		Addr: client.Addr, Key: "flashsale-probe", KeyType: kafka.CoordinatorKeyTypeConsumer,
	})
	if err != nil {
		return err
	}
	return coordinator.Error
}

// leaderless finds a partition that nobody could write to now.
func leaderless(topics []kafka.Topic) error {
	for _, topic := range topics {
		for _, partition := range topic.Partitions {
			if partition.Error != nil {
				return fmt.Errorf("topic %s, partition %d: %w", topic.Name, partition.ID, partition.Error)
			}
		}
	}
	return nil
}

// newClusterID is 16 random bytes in the base64 that Kafka uses.
func newClusterID() string {
	var id [16]byte
	rand.Read(id[:])
	id[0] &= 0x7f // no leading '-', which would read as an option
	return base64.RawURLEncoding.EncodeToString(id[:])
}
