package mysqllock

import (
	"time"

	"flashsale/internal/lock"
)

// Options are the options of Open; the zero value is the default.
type Options struct {
	// TTL is how long MySQL keeps a connection from which it hears nothing, and
	// with it the lock; 0 = 30 s. MySQL counts seconds, so it is rounded up to
	// the next whole one. Allowed: up to 1 h.
	TTL time.Duration

	// Wait is how long Acquire waits while somebody else holds the lock;
	// 0 = lock.DefaultWait, negative = lock.TryOnce.
	Wait time.Duration

	// Drift is how much earlier than MySQL a holder takes its lease to have
	// ended, since their clocks don't run equally fast; 0 = TTL/100 + 2 ms.
	// Allowed: 0 to a quarter of TTL.
	Drift time.Duration

	// Timeout bounds each statement that waits for no lock, and a release as a
	// whole; 0 = 2 s.
	Timeout time.Duration

	// Prefix stands before every key in the table's names.
	Prefix string

	// Connections bounds how many keys can be held or waited for at a time in
	// this process: each takes one; 0 = 64.
	Connections int
}

const defaultConnections = 64

func (o Options) timing() lock.Timing {
	return lock.Timing{TTL: o.TTL, Wait: o.Wait, Drift: o.Drift, Timeout: o.Timeout}
}

func (o Options) withDefaults() Options {
	t := o.timing().WithDefaults(time.Second)
	o.TTL, o.Wait, o.Drift, o.Timeout = t.TTL, t.Wait, t.Drift, t.Timeout
	if o.Connections == 0 {
		o.Connections = defaultConnections
	}
	return o
}

func (o Options) validate() error {
	if o.Connections < 0 {
		return lock.InvalidOption(packageName, "Connections", o.Connections, "at least 1")
	}
	return o.timing().Validate(packageName, time.Second)
}
