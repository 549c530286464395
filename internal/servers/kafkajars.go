package servers

import (
	"context"
	_ "embed"
	"encoding/xml"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// The POM is the one place that names Kafka's version.
//
//go:embed kafka.xml
var kafkaPOM []byte

var kafkaVersion = sync.OnceValue(func() string {
	var pom struct {
		Dependencies []struct {
			Artifact string `xml:"artifactId"`
			Version  string `xml:"version"`
		} `xml:"dependencies>dependency"`
	}
	if err := xml.Unmarshal(kafkaPOM, &pom); err != nil || len(pom.Dependencies) == 0 {
		panic(fmt.Sprint("servers: kafka.xml: ", err))
	}
	return pom.Dependencies[0].Version
})

// KafkaAvailable says whether Apache Kafka can start here without a download:
// nil, or what is missing.
func KafkaAvailable() error {
	if _, err := find("java"); err != nil {
		return err
	}
	jars, err := kafkaJars()
	if err != nil {
		return err
	}
	if _, err := os.Stat(jars); err != nil {
		return fmt.Errorf("the jars of Kafka %s are not in %s", kafkaVersion(), jars)
	}
	return nil
}

// FetchKafka downloads Kafka's jars (43 MB) with Maven into the user's cache
// folder, unless they are there. Several processes may do so at once.
func FetchKafka(ctx context.Context) error {
	jars, err := kafkaJars()
	if err != nil {
		return err
	}
	if _, err := os.Stat(jars); err == nil {
		return nil
	}
	maven, err := find("mvn")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(jars), 0o755); err != nil {
		return fmt.Errorf("servers: kafka: %w", err)
	}
	work, err := os.MkdirTemp(filepath.Dir(jars), "fetch-")
	if err != nil {
		return fmt.Errorf("servers: kafka: %w", err)
	}
	defer os.RemoveAll(work)
	if err := os.WriteFile(filepath.Join(work, "pom.xml"), kafkaPOM, 0o644); err != nil {
		return fmt.Errorf("servers: kafka: %w", err)
	}
	cmd := exec.Command(maven, "-q", "-B", "dependency:copy-dependencies",
		"-DincludeScope=runtime", "-DoutputDirectory=libs")
	cmd.Dir = work
	cmd.WaitDelay = time.Second
	if err := (&process{}).run(ctx, cmd); err != nil {
		return fmt.Errorf("servers: kafka: %w", err)
	}
	// The folder appears complete or not at all. When another process was
	// quicker, its folder is as good.
	if err := os.Rename(filepath.Join(work, "libs"), jars); err != nil {
		if _, missing := os.Stat(jars); missing != nil {
			return fmt.Errorf("servers: kafka: %w", err)
		}
	}
	return nil
}

// kafkaJars is the folder of the jars, there or not.
func kafkaJars() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("servers: kafka: %w", err)
	}
	return filepath.Join(cache, "flashsale", "kafka-"+kafkaVersion()), nil
}
