//go:build unix

package child

import (
	"errors"
	"os"
	"syscall"
)

const terminate = syscall.SIGTERM

func signal(p *os.Process, sig os.Signal) error {
	err := syscall.Kill(-p.Pid, sig.(syscall.Signal))
	if errors.Is(err, syscall.ESRCH) {
		return nil // ended a moment ago
	}
	return err
}
