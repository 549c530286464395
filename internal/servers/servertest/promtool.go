package servertest

import (
	"testing"

	"flashsale/internal/servers"
)

// Promtool is the path of promtool. Without it the test is skipped, and counted
// as such.
func Promtool(t testing.TB) string {
	t.Helper()
	return needs(t, servers.Promtool)
}

// Prometheus is the path of the server of that name; see Promtool.
func Prometheus(t testing.TB) string {
	t.Helper()
	return needs(t, servers.Prometheus)
}

func needs(t testing.TB, find func() (string, error)) string {
	t.Helper()
	path, err := find()
	if err != nil {
		record(t, servers.PromtoolName, "skipped")
		t.Skipf("%v (`make deps` installs it)", err)
	}
	return path
}
