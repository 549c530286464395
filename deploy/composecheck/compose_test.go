// Package composecheck loads compose.yaml as Docker Compose does, with its own
// library: schema, interpolation, and whether what is named is there. It starts
// nothing. It has a go.mod of its own, as nothing else needs that library.
package composecheck

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

func load(t *testing.T, file string) (*types.Project, error) {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{file}, cli.WithEnvFiles("../.env.example"), cli.WithDotEnv)
	if err != nil {
		t.Fatal(err)
	}
	return options.LoadProject(t.Context())
}

func TestComposeFileIsValid(t *testing.T) {
	project, err := load(t, "../compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"api", "grafana", "kafka", "migrate", "mysql", "prometheus", "redis", "syncer"}
	if got := project.ServiceNames(); !slices.Equal(got, want) {
		t.Errorf("services %v, want %v", got, want)
	}
	for name, service := range project.Services {
		if service.Build != nil {
			if _, err := os.Stat(filepath.Join(service.Build.Context, service.Build.Dockerfile)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, v := range service.Volumes {
			if _, err := os.Stat(v.Source); v.Type == types.VolumeTypeBind && err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// What is wrong is found, so the check checks something.
func TestWrongComposeFilesAreRefused(t *testing.T) {
	good, err := os.ReadFile("../compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string][2]string{
		"schema":     {"    restart: unless-stopped\n", "    restarts: unless-stopped\n"},
		"condition":  {"condition: service_healthy", "condition: healthy"},
		"dependency": {"      redis: {condition", "      rediss: {condition"},
		"duration":   {"interval: 5s", "interval: soon"},
		"variable":   {"${MYSQL_PASSWORD:?", "${MYSQL_PASSPHRASE:?"},
		"anchor":     {"<<: *program", "<<: *programs"},
	} {
		if !strings.Contains(string(good), change[0]) {
			t.Errorf("%s: compose.yaml has no %q", what, change[0])
		}
		file := filepath.Join(t.TempDir(), "compose.yaml")
		if err := os.WriteFile(file, bytes.Replace(good, []byte(change[0]), []byte(change[1]), 1), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := load(t, file); err == nil {
			t.Errorf("%s: %q is accepted", what, change[1])
		}
	}
}
