package zklock

import (
	"strings"
	"time"

	"flashsale/internal/lock"
)

// Options are the options of Dial; the zero value is the default.
type Options struct {
	// TTL is the session's timeout: how long a lease outlives a holder of whom
	// nothing is heard; 0 = 30 s. The server raises or lowers it to what it
	// allows, and holders go by that. Allowed: 200 ms to 1 h.
	TTL time.Duration

	// Wait is how long Acquire waits while somebody else holds the lock;
	// 0 = lock.DefaultWait, negative = lock.TryOnce.
	Wait time.Duration

	// Drift is how much earlier than ZooKeeper a holder takes its lease to have
	// ended, since their clocks don't run equally fast; 0 = TTL/100 + 2 ms.
	// Allowed: 0 to a quarter of TTL.
	Drift time.Duration

	// Timeout bounds each request, and a release as a whole; 0 = 2 s.
	Timeout time.Duration

	// Root is the node below which the keys' nodes are made; empty =
	// "/flashsale/lock". All of them are container nodes, which ZooKeeper
	// deletes once they have been empty for a while.
	Root string
}

// MinTTL is the shortest TTL that can be asked for.
const MinTTL = 200 * time.Millisecond

const defaultRoot = "/flashsale/lock"

func (o Options) timing() lock.Timing {
	return lock.Timing{TTL: o.TTL, Wait: o.Wait, Drift: o.Drift, Timeout: o.Timeout}
}

func (o Options) withDefaults() Options {
	t := o.timing().WithDefaults(1)
	o.TTL, o.Wait, o.Drift, o.Timeout = t.TTL, t.Wait, t.Drift, t.Timeout
	if o.Root == "" {
		o.Root = defaultRoot
	}
	return o
}

func (o Options) validate() error {
	if !strings.HasPrefix(o.Root, "/") || strings.HasSuffix(o.Root, "/") {
		return lock.InvalidOption(packageName, "Root", o.Root, "a path like "+defaultRoot)
	}
	return o.timing().Validate(packageName, MinTTL)
}
