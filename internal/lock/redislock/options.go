package redislock

import (
	"fmt"
	"strings"
	"time"

	"flashsale/internal/lock"
)

// Options are the options of every lock of this package; the zero value is
// the default.
type Options struct {
	// TTL is how long a lease lives unless it is extended; 0 = 30 s.
	// Allowed: 10 ms to 1 h, in whole milliseconds.
	TTL time.Duration

	// Wait is how long Acquire waits while somebody else holds the lock;
	// 0 = lock.DefaultWait, negative = lock.TryOnce.
	Wait time.Duration

	// Tries, if it isn't 0, bounds how often Acquire asks for a lock that
	// somebody else holds, within Wait. The pauses between are random, from
	// PollMin to PollMax, and nothing cuts them short: no waiter is woken.
	Tries int

	// PollMin and PollMax bound the random pause between two attempts.
	// 0 = 5 and 15 ms for a lock that only polls, longer ones for a lock that
	// is woken and polls in case the message got lost, and 100 and 300 ms with
	// Tries.
	// Allowed: 1 ms <= PollMin <= PollMax.
	PollMin, PollMax time.Duration

	// Drift is how much earlier than the server a holder takes its lease to
	// have ended, since their clocks don't run equally fast; 0 = TTL/100 + 2 ms.
	// Allowed: 0 to a quarter of TTL.
	Drift time.Duration

	// ReleaseTimeout bounds a release, or giving back a grant whose answer
	// was lost, with all its attempts; 0 = 2 s.
	ReleaseTimeout time.Duration

	// Replicas is how many replicas must have acknowledged a grant (WAIT) within
	// ReplicaTimeout, 0 = 200 ms, before it counts. One that fewer have is given
	// back, and is lock.ErrUnavailable after three attempts. It costs one more
	// round trip, on a connection of its own, and a client of one server; a
	// cluster's can't do it. Allowed: 0 or more; 1 ms to half of TTL.
	//
	// It makes it less likely that a failover loses the lock, and no more than
	// that: a replica that did not acknowledge may be the one that takes over,
	// what it acknowledged need not be on its disk, extending and releasing
	// aren't waited for, and while replicas lag nobody is granted anything. To be
	// certain takes a fence. Setting min-replicas-to-write on the server as well
	// refuses the grant before it is made, which is lock.ErrUnavailable too.
	Replicas       int
	ReplicaTimeout time.Duration

	// Keys names the lock and the fence of a key. One script reaches both, so
	// they need the same hash tag ("{...}") to share a slot on Redis Cluster.
	// nil = "lock:{key}" and "fence:{key}".
	Keys func(key string) (lock, fence string)
}

const (
	defaultTTL            = 30 * time.Second
	defaultReleaseTimeout = 2 * time.Second
	defaultReplicaTimeout = 200 * time.Millisecond

	minTTL   = 10 * time.Millisecond
	maxTTL   = time.Hour
	fenceTTL = 24 * time.Hour // a fence outlives every lease by far
)

// polls is the default pause between two attempts of a variant.
type polls struct{ min, max time.Duration }

var (
	pollOnly   = polls{min: 5 * time.Millisecond, max: 15 * time.Millisecond}
	pollBeside = polls{min: 50 * time.Millisecond, max: 150 * time.Millisecond} // notifications that may get lost
	pollTries  = polls{min: 100 * time.Millisecond, max: 300 * time.Millisecond}
)

func (o Options) withDefaults(p polls) Options {
	or := func(value *time.Duration, otherwise time.Duration) {
		if *value == 0 {
			*value = otherwise
		}
	}
	or(&o.TTL, defaultTTL)
	or(&o.Wait, lock.DefaultWait)
	or(&o.Drift, o.TTL/100+2*time.Millisecond)
	or(&o.ReleaseTimeout, defaultReleaseTimeout)
	or(&o.ReplicaTimeout, min(defaultReplicaTimeout, o.TTL/2))
	if o.Tries != 0 {
		p = pollTries
	}
	if o.PollMin == 0 && o.PollMax == 0 {
		o.PollMin, o.PollMax = p.min, p.max
	}
	or(&o.PollMin, min(p.min, o.PollMax))
	or(&o.PollMax, max(p.max, o.PollMin))
	if o.Keys == nil {
		o.Keys = defaultKeys
	}
	return o
}

func defaultKeys(key string) (lock, fence string) {
	return "lock:{" + key + "}", "fence:{" + key + "}"
}

func (o Options) validate() error {
	invalid := func(name string, value any, allowed string) error {
		return fmt.Errorf("redislock: option %s is %v, allowed: %s", name, value, allowed)
	}
	switch {
	case o.TTL < minTTL || o.TTL > maxTTL || o.TTL%time.Millisecond != 0:
		return invalid("TTL", o.TTL, fmt.Sprintf("%v to %v in whole milliseconds", minTTL, maxTTL))
	case o.Drift < 0 || o.Drift > o.TTL/4:
		return invalid("Drift", o.Drift, fmt.Sprintf("0s to a quarter of TTL, %v", o.TTL/4))
	case o.PollMin < time.Millisecond:
		return invalid("PollMin", o.PollMin, "at least 1ms")
	case o.PollMax < o.PollMin:
		return invalid("PollMax", o.PollMax, fmt.Sprintf("at least PollMin, %v", o.PollMin))
	case o.ReleaseTimeout < 0:
		return invalid("ReleaseTimeout", o.ReleaseTimeout, "more than 0s")
	case o.Tries < 0:
		return invalid("Tries", o.Tries, "0 or more")
	case o.Replicas < 0:
		return invalid("Replicas", o.Replicas, "0 or more")
	case o.ReplicaTimeout < time.Millisecond || o.ReplicaTimeout > o.TTL/2:
		return invalid("ReplicaTimeout", o.ReplicaTimeout, fmt.Sprintf("1ms to half of TTL, %v", o.TTL/2))
	}
	lockKey, fenceKey := o.Keys("probe")
	names := fmt.Sprintf("(%q, %q)", lockKey, fenceKey)
	switch {
	case lockKey == "" || fenceKey == "" || lockKey == fenceKey:
		return invalid("Keys", names, "two different names")
	case hashTag(lockKey) == "" || hashTag(lockKey) != hashTag(fenceKey):
		return invalid("Keys", names, "names with the same {hash tag}, to share a slot")
	}
	return nil
}

// hashTag is the part of a name that alone decides on its slot; "" when the
// whole name does.
func hashTag(name string) string {
	_, rest, found := strings.Cut(name, "{")
	tag, _, closed := strings.Cut(rest, "}")
	if !found || !closed {
		return ""
	}
	return tag
}
