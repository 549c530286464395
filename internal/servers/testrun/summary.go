package main

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// summary prints which servers were real, and how many tests had one.
func summary(stdout io.Writer, stores []*store, tally string) {
	counts := readTally(tally)
	fmt.Fprintln(stdout, "servers of this run:")
	for _, s := range stores {
		if s.server != nil {
			fmt.Fprintf(stdout, "  %-9s real      %s%s\n", s.name, s.server.Version(), standsFor(s.server.Version()))
		} else if s.found != "" {
			fmt.Fprintf(stdout, "  %-9s found     %s\n", s.name, s.found)
		} else if s.skips {
			fmt.Fprintf(stdout, "  %-9s MISSING   %s (make deps installs it); tests that need it were SKIPPED\n", s.name, firstLine(s.why))
		} else {
			fmt.Fprintf(stdout, "  %-9s STAND-IN  %s (make deps installs the real one)\n", s.name, firstLine(s.why))
		}
	}
	fmt.Fprintf(stdout, "tests on real servers: %d, on a stand-in: %d, skipped for want of a real server: %d\n",
		counts["real"], counts["stand-in"], counts["skipped"])
}

func standsFor(version string) string {
	if strings.HasPrefix(version, "MariaDB") {
		return " (stands for MySQL)"
	}
	return ""
}

// readTally counts tests, not uses: a test that had several servers counts once,
// under the worst that it got.
func readTally(path string) map[string]int {
	text, _ := os.ReadFile(path) // none: no test asked for a server
	rank := map[string]int{"real": 1, "stand-in": 2, "skipped": 3}
	worst := map[string]string{}
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSpace(line), "\t", 3)
		if len(fields) != 3 {
			continue
		}
		what, test := fields[1], fields[2]
		if rank[what] > rank[worst[test]] {
			worst[test] = what
		}
	}
	counts := map[string]int{}
	for _, what := range worst {
		counts[what]++
	}
	return counts
}
