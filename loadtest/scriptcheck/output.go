package main

import (
	"fmt"
	"io"
	"os"
	"sync"
)

// lockedWriter lets many VUs write whole lines.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

func (c config) logf(level, format string, args ...any) {
	fmt.Fprintf(c.stderr, level+": "+format+"\n", args...)
}

// write stores what handleSummary returned: a file's path, stdout or stderr,
// with the text. Like k6 it makes no folders and reports without failing.
func (c config) write(outputs map[string]string) {
	for name, text := range outputs {
		var err error
		switch name {
		case "stdout":
			_, err = io.WriteString(c.stdout, text)
		case "stderr":
			_, err = io.WriteString(c.stderr, text)
		default:
			err = os.WriteFile(name, []byte(text), 0o644)
		}
		if err != nil {
			c.logf("error", "handleSummary: %v", err)
		}
	}
}
