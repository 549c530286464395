package servertest

import (
	"testing"

	"flashsale/internal/servers"
)

// Promtool is the path of promtool. Without it the test is skipped, and counted
// as such.
func Promtool(t testing.TB) string {
	t.Helper()
	path, err := servers.Promtool()
	if err != nil {
		record(t, servers.PromtoolName, "skipped")
		t.Skipf("needs %s (%v; `make deps` installs it)", servers.PromtoolName, err)
	}
	return path
}
