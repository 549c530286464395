package app

import (
	"os"
	"runtime/debug"
)

// RelaxGC lets a program that serves purchases collect garbage a quarter as often
// as usual: it keeps little (some 10 MiB) and makes much, so that the collector
// would run many times a second. GOGC, when set, counts instead.
func RelaxGC() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
}
