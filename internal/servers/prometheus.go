package servers

import (
	"fmt"
	"os/exec"
	"strings"
)

// PromtoolName is what messages call the program that checks rules.
const PromtoolName = "promtool"

// Promtool is the path of the program that checks what Prometheus is given. It
// is no server; it comes in the same package as Prometheus.
func Promtool() (path string, err error) { return find(PromtoolName) }

// Prometheus is the path of the server. Tests that try rules and dashboards on
// it start it by themselves.
func Prometheus() (path string, err error) { return find("prometheus") }

// PromtoolVersion is like "promtool 2.42.0", an error without promtool.
func PromtoolVersion() (string, error) {
	path, err := Promtool()
	if err != nil {
		return "", err
	}
	output, err := exec.Command(path, "--version").CombinedOutput()
	words := strings.Fields(string(output)) // promtool, version 2.42.0+ds (...
	if err != nil || len(words) < 3 {
		return "", fmt.Errorf("%s --version: %v: %s", path, err, output)
	}
	version, _, _ := strings.Cut(words[2], "+")
	return PromtoolName + " " + version, nil
}
