package zklock

import (
	"fmt"
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

const (
	defaultTTL     = 30 * time.Second
	maxTTL         = time.Hour
	defaultTimeout = 2 * time.Second
	defaultRoot    = "/flashsale/lock"
)

func (o Options) withDefaults() Options {
	or := func(value *time.Duration, otherwise time.Duration) {
		if *value == 0 {
			*value = otherwise
		}
	}
	or(&o.TTL, defaultTTL)
	or(&o.Wait, lock.DefaultWait)
	or(&o.Drift, o.TTL/100+2*time.Millisecond)
	or(&o.Timeout, defaultTimeout)
	if o.Root == "" {
		o.Root = defaultRoot
	}
	return o
}

func (o Options) validate() error {
	invalid := func(name string, value any, allowed string) error {
		return fmt.Errorf("zklock: option %s is %v, allowed: %s", name, value, allowed)
	}
	switch {
	case o.TTL < MinTTL || o.TTL > maxTTL:
		return invalid("TTL", o.TTL, fmt.Sprintf("%v to %v", MinTTL, maxTTL))
	case o.Drift < 0 || o.Drift > o.TTL/4:
		return invalid("Drift", o.Drift, fmt.Sprintf("0s to a quarter of TTL, %v", o.TTL/4))
	case o.Timeout < 0:
		return invalid("Timeout", o.Timeout, "more than 0s")
	case !strings.HasPrefix(o.Root, "/") || strings.HasSuffix(o.Root, "/"):
		return invalid("Root", o.Root, "a path like "+defaultRoot)
	}
	return nil
}
