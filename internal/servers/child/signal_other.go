//go:build !unix

package child

import (
	"errors"
	"os"
	"os/exec"
)

// Without signals every end is a hard one.
var terminate = os.Kill

func own(*exec.Cmd) {}

func signal(p *os.Process, _ os.Signal) error {
	err := p.Kill()
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}
