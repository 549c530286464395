// Package deploy_test compares the files of this folder with the code that they
// deploy. It starts no containers.
package deploy_test

import (
	"bytes"
	"encoding/xml"
	"io"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"flashsale/internal/app"
)

type composition struct {
	Services map[string]service
	Volumes  map[string]any
}

type service struct {
	Image       string
	Build       struct{ Context, Dockerfile string }
	Command     []string
	Environment map[string]string
	Ports       []string
	Volumes     []string
	MemLimit    string `yaml:"mem_limit"`
	Healthcheck struct{ Test []string }
	DependsOn   map[string]struct{ Condition string } `yaml:"depends_on"`
}

// ours are the services that are built here, and what each runs.
var ours = map[string]string{"api": "api", "syncer": "syncer", "migrate": "flashsale migrate"}

func TestProgramsAcceptTheirEnvironment(t *testing.T) {
	c := compose(t)
	for name, program := range map[string]app.Program{"api": app.APIProgram, "syncer": app.SyncerProgram, "migrate": app.APIProgram} {
		var environ []string
		for variable, value := range c.Services[name].Environment {
			environ = append(environ, variable+"="+value)
		}
		_, warnings, err := app.ParseConfig(program, nil, environ, io.Discard)
		if err != nil || len(warnings) > 0 {
			t.Errorf("%s: %v, warnings %q", name, err, warnings)
		}
	}
}

func TestProgramsFindTheirServers(t *testing.T) {
	c := compose(t)
	for variable, server := range map[string]string{
		"FLASHSALE_REDIS_ADDRS": "redis", "FLASHSALE_KAFKA_BROKERS": "kafka", "FLASHSALE_MYSQL_DSN": "mysql",
	} {
		value := c.Services["api"].Environment[variable]
		listening := map[string]string{"redis": "redis:6379", "mysql": "mysql:3306", "kafka": "kafka:19092"}[server]
		if !strings.Contains(value, listening) || c.Services[server].Image == "" {
			t.Errorf("%s=%s does not name service %s", variable, value, server)
		}
	}
	kafka, sql, dsn := c.Services["kafka"].Environment, c.Services["mysql"].Environment, c.Services["api"].Environment["FLASHSALE_MYSQL_DSN"]
	if !strings.Contains(kafka["KAFKA_ADVERTISED_LISTENERS"], "//kafka:19092") || !strings.Contains(kafka["KAFKA_LISTENERS"], ":19092") {
		t.Errorf("Kafka listens elsewhere: %v", kafka)
	}
	if want := sql["MYSQL_USER"] + ":" + sql["MYSQL_PASSWORD"] + "@"; !strings.HasPrefix(dsn, want) || !strings.HasSuffix(dsn, "/"+sql["MYSQL_DATABASE"]) {
		t.Errorf("%s is not what mysql makes: %v", dsn, sql)
	}
	if command := strings.Join(c.Services["redis"].Command, " "); !strings.Contains(command, "--appendonly yes") || !strings.Contains(command, "--maxmemory-policy noeviction") {
		t.Errorf("redis may forget: %s", command)
	}
}

func TestEachServiceIsPinnedBoundedAndWatched(t *testing.T) {
	c := compose(t)
	if got := slices.Sorted(maps.Keys(c.Services)); !slices.Equal(got, []string{"api", "grafana", "kafka", "migrate", "mysql", "prometheus", "redis", "syncer"}) {
		t.Fatalf("services %v", got)
	}
	published := regexp.MustCompile(`^127\.0\.0\.1:\d+:\d+$`)
	for name, s := range c.Services {
		run, isOurs := ours[name]
		switch {
		case isOurs && (s.Build.Context != ".." || s.Build.Dockerfile != "deploy/Dockerfile" || strings.Join(s.Command, " ") != run):
			t.Errorf("%s: built from %+v, runs %q", name, s.Build, s.Command)
		case !isOurs && !pinned(s.Image):
			t.Errorf("%s: image %s names no version", name, s.Image)
		}
		if s.MemLimit == "" {
			t.Errorf("%s: no memory limit", name)
		}
		if len(s.Healthcheck.Test) == 0 && name != "migrate" {
			t.Errorf("%s: no health check", name)
		}
		for _, port := range s.Ports {
			if !published.MatchString(port) {
				t.Errorf("%s: port %s is open to the network", name, port)
			}
		}
		for _, volume := range s.Volumes {
			switch source, _, _ := strings.Cut(volume, ":"); {
			case strings.HasPrefix(source, "./"):
				if _, err := os.Stat(source); err != nil || !strings.HasSuffix(volume, ":ro") {
					t.Errorf("%s: %s: not there (%v), or not read-only", name, volume, err)
				}
			case !slices.Contains(slices.Collect(maps.Keys(c.Volumes)), source):
				t.Errorf("%s: volume %s is not declared", name, source)
			}
		}
		for on, how := range s.DependsOn {
			switch target, ok := c.Services[on]; {
			case !ok:
				t.Errorf("%s waits for %s, which does not exist", name, on)
			case how.Condition == "service_healthy" && len(target.Healthcheck.Test) == 0:
				t.Errorf("%s waits for the health of %s, which nobody checks", name, on)
			case how.Condition == "service_completed_successfully" && on != "migrate":
				t.Errorf("%s waits for the end of %s", name, on)
			}
		}
	}
}

// The tests run on this Kafka and on these drivers' MySQL.
func TestImagesAreTheVersionsOfTheTests(t *testing.T) {
	var pom struct {
		Dependencies []struct {
			Version string `xml:"version"`
		} `xml:"dependencies>dependency"`
	}
	if err := xml.Unmarshal(read(t, "../internal/servers/kafka.xml"), &pom); err != nil || len(pom.Dependencies) == 0 {
		t.Fatal(err)
	}
	c := compose(t)
	for name, want := range map[string]string{"kafka": "apache/kafka:" + pom.Dependencies[0].Version, "mysql": "mysql:8.4"} {
		if got := c.Services[name].Image; got != want {
			t.Errorf("%s: image %s instead of %s", name, got, want)
		}
	}
}

func TestEnvExampleIsComplete(t *testing.T) {
	asked := map[string]bool{}
	for _, match := range reference.FindAllSubmatch(read(t, "compose.yaml"), -1) {
		asked[string(match[1])] = true
	}
	got := slices.Sorted(maps.Keys(example(t)))
	if want := slices.Sorted(maps.Keys(asked)); !slices.Equal(got, want) {
		t.Errorf(".env.example has\n%q, compose.yaml asks for\n%q", got, want)
	}
}

func TestDockerfileBuildsTheProgramsWithOurGo(t *testing.T) {
	file := string(read(t, "Dockerfile"))
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(read(t, "../go.mod"))
	from := regexp.MustCompile(`(?m)^FROM (\S+)`).FindAllStringSubmatch(file, -1)
	if len(from) != 2 || from[0][1] != "golang:"+string(version[1])+"-alpine" || !pinned(from[1][1]) {
		t.Errorf("stages %q with Go %s", from, version[1])
	}
	for _, want := range []string{"CGO_ENABLED=0", "./cmd/...", "USER 10001"} {
		if !strings.Contains(file, want) {
			t.Errorf("no %s", want)
		}
	}
	for _, line := range regexp.MustCompile(`(?m)^COPY (deploy/\S+)`).FindAllStringSubmatch(file, -1) {
		read(t, path.Join("..", line[1]))
	}
	for name, command := range ours {
		program, _, _ := strings.Cut(command, " ")
		if _, err := os.Stat(path.Join("../cmd", program, "main.go")); err != nil {
			t.Errorf("service %s: %v", name, err)
		}
	}
}

// pinned: by a version, not by a word that means another image tomorrow.
func pinned(image string) bool {
	return regexp.MustCompile(`^[a-z0-9/.-]+:v?\d+\.\d+[a-z0-9.-]*$`).MatchString(image)
}

// reference is ${NAME}, ${NAME:-default} or ${NAME:?complaint}.
var reference = regexp.MustCompile(`\$\{([A-Z_]+)(?::([-?])([^}]*))?\}`)

// compose reads compose.yaml with .env.example as its .env.
func compose(t *testing.T) composition {
	t.Helper()
	values := example(t)
	text := reference.ReplaceAllStringFunc(string(read(t, "compose.yaml")), func(found string) string {
		m := reference.FindStringSubmatch(found)
		if value, ok := values[m[1]]; ok {
			if m[2] == "-" && value != m[3] {
				t.Errorf("%s is %s in .env.example, %s by default", m[1], value, m[3])
			}
			return value
		}
		t.Errorf("%s is not in .env.example", m[1])
		return m[3]
	})
	var c composition
	decoder := yaml.NewDecoder(bytes.NewReader([]byte(text)))
	if err := decoder.Decode(&c); err != nil {
		t.Fatal(err)
	}
	return c
}

func example(t *testing.T) map[string]string {
	t.Helper()
	values := map[string]string{}
	for line := range strings.Lines(string(read(t, ".env.example"))) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if !ok || value == "" {
			t.Errorf(".env.example: %q", line)
		}
		values[name] = value
	}
	return values
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
