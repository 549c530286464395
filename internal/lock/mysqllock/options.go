package mysqllock

import (
	"fmt"
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

const (
	defaultTTL         = 30 * time.Second
	maxTTL             = time.Hour
	defaultTimeout     = 2 * time.Second
	defaultConnections = 64
)

func (o Options) withDefaults() Options {
	or := func(value *time.Duration, otherwise time.Duration) {
		if *value == 0 {
			*value = otherwise
		}
	}
	or(&o.TTL, defaultTTL)
	o.TTL = (o.TTL + time.Second - 1).Truncate(time.Second)
	or(&o.Wait, lock.DefaultWait)
	or(&o.Drift, o.TTL/100+2*time.Millisecond)
	or(&o.Timeout, defaultTimeout)
	if o.Connections == 0 {
		o.Connections = defaultConnections
	}
	return o
}

func (o Options) validate() error {
	invalid := func(name string, value any, allowed string) error {
		return fmt.Errorf("mysqllock: option %s is %v, allowed: %s", name, value, allowed)
	}
	switch {
	case o.TTL <= 0 || o.TTL > maxTTL:
		return invalid("TTL", o.TTL, fmt.Sprintf("more than 0s, up to %v", maxTTL))
	case o.Drift < 0 || o.Drift > o.TTL/4:
		return invalid("Drift", o.Drift, fmt.Sprintf("0s to a quarter of TTL, %v", o.TTL/4))
	case o.Timeout < 0:
		return invalid("Timeout", o.Timeout, "more than 0s")
	case o.Connections < 0:
		return invalid("Connections", o.Connections, "at least 1")
	}
	return nil
}
