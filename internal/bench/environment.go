package bench

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// Environment is what figures belong to. What could not be found out is empty.
type Environment struct {
	Commit      string `json:"commit"`
	CommitFrom  string `json:"commit_from"` // build: stamped into the program; folder: of the one it was run in
	Modified    bool   `json:"modified"`    // there are changes that the commit doesn't have
	Go          string `json:"go"`
	OS          string `json:"os"`
	CPU         string `json:"cpu"`
	Cores       int    `json:"cores"`
	GOMAXPROCS  int    `json:"gomaxprocs"`
	MemoryBytes int64  `json:"memory_bytes"`
}

// Here asks the program, the working folder and the machine.
func Here(ctx context.Context) Environment {
	e := Environment{
		Go: runtime.Version(), OS: osName(ctx) + ", " + runtime.GOOS + "/" + runtime.GOARCH,
		Cores: runtime.NumCPU(), GOMAXPROCS: runtime.GOMAXPROCS(0),
	}
	e.CPU, e.MemoryBytes = hardware(ctx)
	if info, ok := debug.ReadBuildInfo(); ok {
		e.stamp(info.Settings)
	}
	if e.Commit == "" {
		e.lookUp(ctx)
	}
	return e
}

func (e *Environment) stamp(settings []debug.BuildSetting) {
	for _, s := range settings {
		switch s.Key {
		case "vcs.revision":
			e.Commit, e.CommitFrom = s.Value, "build"
		case "vcs.modified":
			e.Modified = s.Value == "true"
		}
	}
}

// lookUp is for go run, which stamps nothing but builds what is in the working
// folder, if that is this project's.
func (e *Environment) lookUp(ctx context.Context) {
	if !ours() {
		return
	}
	if commit := ask(ctx, "git", "rev-parse", "HEAD"); commit != "" {
		e.Commit, e.CommitFrom = commit, "folder"
		e.Modified = ask(ctx, "git", "status", "--porcelain", "--untracked-files=no") != ""
	}
}

// ours reports whether the working folder is within this module.
func ours() bool {
	dir, err := os.Getwd()
	for ; err == nil; dir = filepath.Dir(dir) {
		text, readErr := os.ReadFile(filepath.Join(dir, "go.mod"))
		if readErr == nil {
			return bytes.HasPrefix(text, []byte("module flashsale\n"))
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	return false
}

// ask is what a program says, empty when it can't.
func ask(ctx context.Context, name string, args ...string) string {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	text, err := exec.CommandContext(ctx, name, args...).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

func osName(ctx context.Context) string {
	name := value("/etc/os-release", "PRETTY_NAME", "=")
	kernel, err := os.ReadFile("/proc/sys/kernel/osrelease")
	switch {
	case name != "" && err == nil:
		return strings.Trim(name, `"`) + ", Linux " + strings.TrimSpace(string(kernel))
	case runtime.GOOS == "darwin":
		return "macOS " + ask(ctx, "sw_vers", "-productVersion")
	default:
		return "unknown system"
	}
}

func hardware(ctx context.Context) (cpu string, memory int64) {
	if runtime.GOOS == "darwin" {
		memory, _ = strconv.ParseInt(ask(ctx, "sysctl", "-n", "hw.memsize"), 10, 64)
		return ask(ctx, "sysctl", "-n", "machdep.cpu.brand_string"), memory
	}
	kib, _ := strconv.ParseInt(strings.TrimSuffix(value("/proc/meminfo", "MemTotal", ":"), " kB"), 10, 64)
	return value("/proc/cpuinfo", "model name", ":"), kib << 10
}

// value is that of the first line with this name in a file.
func value(file, name, separator string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if n, v, ok := strings.Cut(line, separator); ok && strings.TrimSpace(n) == name {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// lines describe it, a fact each.
func (e Environment) lines() []string {
	commit := e.Commit
	switch {
	case commit == "":
		commit = "unknown (not stamped into this build; `make build` does)"
	case e.CommitFrom == "folder":
		commit += " (of the working folder)"
	}
	if e.Modified {
		commit += ", with uncommitted changes"
	}
	cpu := e.CPU
	if cpu == "" {
		cpu = "unknown processor"
	}
	machine := fmt.Sprintf("%s, %d cores", cpu, e.Cores)
	if e.GOMAXPROCS != e.Cores {
		machine += fmt.Sprintf(" (GOMAXPROCS %d)", e.GOMAXPROCS)
	}
	if e.MemoryBytes > 0 {
		machine += fmt.Sprintf(", %.1f GiB", float64(e.MemoryBytes)/(1<<30))
	}
	return []string{"Commit: " + commit, "Machine: " + machine + ", " + e.OS + ", " + e.Go}
}
