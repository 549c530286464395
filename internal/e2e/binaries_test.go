//go:build unix

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, err := build(); built && err == nil {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}

var built bool

// build makes the two programs, once for all tests and when the first one
// wants them. They are built as they run elsewhere, without the race detector
// even when the tests have it: three hundred buyers who poll a lock ten times
// slower are another test, and a long one.
var build = sync.OnceValues(func() (dir string, err error) {
	built = true
	if dir, err = os.MkdirTemp("", "flashsale-e2e-"); err != nil {
		return "", err
	}
	command := exec.Command("go", "build", "-o", dir+string(filepath.Separator), "flashsale/cmd/api", "flashsale/cmd/syncer")
	if output, err := command.CombinedOutput(); err != nil {
		os.RemoveAll(dir)
		return "", fmt.Errorf("%v: %w\n%s", command.Args, err, output)
	}
	return dir, nil
})

func binary(t testing.TB, name string) string {
	t.Helper()
	dir, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, name)
}
