package etcdlock

import (
	"time"

	"flashsale/internal/lock"
)

// Options are the options of New and Dial; the zero value is the default.
type Options struct {
	// TTL is how long a lease lives unless it is extended; 0 = 30 s. etcd
	// counts seconds, so it is rounded up to the next whole one, and raises
	// what is too short for its elections. Allowed: up to 1 h.
	TTL time.Duration

	// Wait is how long Acquire waits while somebody else holds the lock;
	// 0 = lock.DefaultWait, negative = lock.TryOnce.
	Wait time.Duration

	// Drift is how much earlier than etcd a holder takes its lease to have
	// ended, since their clocks don't run equally fast; 0 = TTL/100 + 2 ms.
	// Allowed: 0 to a quarter of TTL.
	Drift time.Duration

	// Timeout bounds each request, and a release as a whole; 0 = 2 s.
	Timeout time.Duration

	// Prefix stands before every key; empty = "flashsale/lock/".
	Prefix string
}

const defaultPrefix = "flashsale/lock/"

func (o Options) timing() lock.Timing {
	return lock.Timing{TTL: o.TTL, Wait: o.Wait, Drift: o.Drift, Timeout: o.Timeout}
}

func (o Options) withDefaults() Options {
	t := o.timing().WithDefaults(time.Second)
	o.TTL, o.Wait, o.Drift, o.Timeout = t.TTL, t.Wait, t.Drift, t.Timeout
	if o.Prefix == "" {
		o.Prefix = defaultPrefix
	}
	return o
}

func (o Options) validate() error {
	return o.timing().Validate(packageName, time.Second)
}
