package child

import (
	"os/exec"
	"syscall"
)

// own gives the child a process group of its own, so that a Ctrl-C reaches it
// through its parent alone, and ties its life to the parent's.
func own(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
