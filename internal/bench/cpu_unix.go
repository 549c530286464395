//go:build unix

package bench

import (
	"syscall"
	"time"
)

func readCPU() cpuTime {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return cpuTime{}
	}
	return cpuTime{used: time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), known: true}
}
