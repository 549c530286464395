//go:build !unix

package servertest

import (
	"os"
	"sync"
)

// processDir is a folder for the servers of this process.
var processDir = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "flashsale-") })
