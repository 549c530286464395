//go:build unix && !linux

package child

import (
	"os/exec"
	"syscall"
)

// own gives the child a process group of its own. There is no death signal
// here: only a parent that ends in order takes its children along.
func own(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}
