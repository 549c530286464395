//go:build unix

package servertest

import (
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
)

// processDir is a folder that goes when this process does. A test process has
// no last word in which to remove it, so a shell waits for the end of a pipe.
var processDir = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "flashsale-")
	if err != nil {
		return "", err
	}
	remover := exec.Command("/bin/sh", "-c",
		`cat; for i in 1 2 3 4 5; do rm -rf -- "$1" 2>&- && exit; sleep 1; done`, "sh", dir)
	remover.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // no Ctrl-C for it
	if lifeline, err = remover.StdinPipe(); err != nil {
		return "", err
	}
	return dir, remover.Start()
})

// lifeline is closed by the end of this process, not before: kept from the
// garbage collector, which would close it.
//
//lint:ignore U1000 it is there to be held, not to be read
var lifeline io.Closer
