// Package internal_test keeps the direction of imports: cmd on top of app, app
// on top of everything that it wires, and stock and lock below, which know
// nobody.
package internal_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

type source struct {
	ImportPath string
	Imports    []string // without those of tests
	Deps       []string // the same, of all that is imported
}

const module = "flashsale/"

var (
	// What talks to a store. Only app brings these together.
	adapters = []string{
		"internal/lock/redislock", "internal/lock/etcdlock", "internal/lock/zklock", "internal/lock/mysqllock",
		"internal/redisstock", "internal/sqlstock", "internal/kafkastock",
	}

	// What only tests import, besides its like.
	forTests = []string{
		"internal/lock/locktest", "internal/stock/stocktest", "internal/servers/servertest", "internal/servers/testrun",
		"internal/bench/ratios", // a measurement, run by hand like testrun
	}

	// The base: each with the only packages of this module that it may import.
	base = map[string][]string{
		"internal/lock":     {},
		"internal/rediskey": {},
		"internal/stock":    {"internal/lock"},
	}

	// Of these, other modules are none of their business either.
	standardOnly = []string{"internal/lock", "internal/stock", "internal/rediskey"}

	// What serves real buyers, and what must therefore not be linked into it.
	serving  = []string{"cmd/api", "cmd/syncer"}
	standIns = []string{module + "internal/servers", "github.com/alicebob/miniredis/v2", "github.com/twmb/franz-go/pkg/kfake"}

	nameless = []string{"util", "utils", "common", "helper", "helpers", "manager", "managers", "pkg", "misc", "shared"}
)

// faults lists what breaks a rule.
func faults(packages []source) []string {
	var found []string
	fault := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	for _, p := range packages {
		name := strings.TrimPrefix(p.ImportPath, module)
		for _, part := range strings.Split(name, "/") {
			if slices.Contains(nameless, part) {
				fault("%s: the name %q says nothing", name, part)
			}
		}
		for _, imported := range p.Imports {
			if slices.Contains(standardOnly, name) && strings.Contains(strings.Split(imported, "/")[0], ".") {
				fault("%s imports %s: only the standard library", name, imported)
			}
			to, ours := strings.CutPrefix(imported, module)
			if ours {
				if reason := forbidden(name, to); reason != "" {
					fault("%s imports %s: %s", name, to, reason)
				}
			}
		}
		if slices.Contains(serving, name) {
			for _, dep := range p.Deps {
				if slices.Contains(standIns, dep) {
					fault("%s links %s: no stand-in in what serves", name, dep)
				}
			}
		}
	}
	return found
}

// forbidden says why from may not import to; empty: it may.
func forbidden(from, to string) string {
	top := func(name string) string { return strings.Split(name, "/")[0] }
	isAdapter := func(name string) bool { return slices.Contains(adapters, name) }
	allowed, isBase := base[from]
	switch {
	case isBase && !slices.Contains(allowed, to):
		return "it is the base"
	case slices.Contains(forTests, from):
		return "" // tests may look everywhere
	case slices.Contains(forTests, to):
		return "it is for tests"
	case top(to) == "cmd":
		return "commands are nobody's library"
	case isAdapter(to) && isAdapter(from):
		return "adapters don't know each other"
	case isAdapter(to) && from != "internal/app":
		return "only app wires adapters"
	case to == "internal/app" && top(from) != "cmd" && from != "internal/lab":
		return "app is on top"
	case to == "internal/servers" && top(from) != "cmd" && from != "internal/lab":
		return "servers are for commands and tests"
	}
	return ""
}

func TestDirectionOfImports(t *testing.T) {
	packages := list(t)
	if len(packages) < 10 {
		t.Fatalf("only %d packages", len(packages))
	}
	for _, f := range faults(packages) {
		t.Error(f)
	}
}

func TestDirectionTestFindsFaults(t *testing.T) {
	for _, wrong := range [][2]string{
		{"internal/lock", "github.com/redis/go-redis/v9"},
		{"internal/lock", module + "internal/rediskey"},
		{"internal/stock", "gorm.io/gorm"},
		{"internal/stock", module + "internal/redisstock"},
		{"internal/redisstock", module + "internal/lock/redislock"},
		{"internal/sqlstock", module + "internal/kafkastock"},
		{"internal/httpapi", module + "internal/redisstock"},
		{"internal/relay", module + "internal/kafkastock"},
		{"internal/bench", module + "internal/app"},
		{"internal/app", module + "internal/servers"},
		{"internal/app", module + "internal/stock/stocktest"},
		{"internal/app", module + "cmd/api"},
		{"cmd/api", module + "internal/sqlstock"},
		{"internal/util", "fmt"},
		{"internal/stock/helpers", "fmt"},
	} {
		if got := faults([]source{{ImportPath: module + wrong[0], Imports: wrong[1:]}}); len(got) != 1 {
			t.Errorf("%s importing %s: %q", wrong[0], wrong[1], got)
		}
	}
	linked := source{ImportPath: module + "cmd/api", Deps: []string{"github.com/alicebob/miniredis/v2"}}
	if got := faults([]source{linked}); len(got) != 1 {
		t.Errorf("a stand-in within the API: %q", got)
	}
}

// A rule about a package that is gone protects nothing.
func TestRulesNameExistingPackages(t *testing.T) {
	var names []string
	for _, p := range list(t) {
		names = append(names, strings.TrimPrefix(p.ImportPath, module))
	}
	for _, name := range slices.Concat(standardOnly, []string{"internal/lock/redislock", "internal/redisstock", "internal/sqlstock", "internal/kafkastock"}) {
		if !slices.Contains(names, name) {
			t.Errorf("%s does not exist", path.Join(module, name))
		}
	}
}

func list(t *testing.T) []source {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports,Deps", module+"...")
	output, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		errors.As(err, &exit)
		t.Fatalf("go list: %v\n%s", err, exit.Stderr)
	}
	var packages []source
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var p source
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
}
