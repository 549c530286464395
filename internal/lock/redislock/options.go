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

	// PollMin and PollMax bound the random pause between two attempts.
	// 0 = 5 and 15 ms for a lock that only polls, 50 and 150 ms for one that
	// is woken and polls in case the message got lost.
	// Allowed: 1 ms <= PollMin <= PollMax.
	PollMin, PollMax time.Duration

	// Drift is how much earlier than the server a holder takes its lease to
	// have ended, since their clocks don't run equally fast; 0 = TTL/100 + 2 ms.
	// Allowed: 0 to a quarter of TTL.
	Drift time.Duration

	// ReleaseTimeout bounds a release, or giving back a grant whose answer
	// was lost, with all its attempts; 0 = 2 s.
	ReleaseTimeout time.Duration

	// Keys names the lock and the fence of a key. One script reaches both, so
	// they need the same hash tag ("{...}") to share a slot on Redis Cluster.
	// nil = "lock:{key}" and "fence:{key}".
	Keys func(key string) (lock, fence string)
}

const (
	defaultTTL            = 30 * time.Second
	defaultReleaseTimeout = 2 * time.Second

	minTTL   = 10 * time.Millisecond
	maxTTL   = time.Hour
	fenceTTL = 24 * time.Hour // a fence outlives every lease by far
)

// polls is the default pause between two attempts of a variant.
type polls struct{ min, max time.Duration }

var (
	pollOnly   = polls{min: 5 * time.Millisecond, max: 15 * time.Millisecond}
	pollBeside = polls{min: 50 * time.Millisecond, max: 150 * time.Millisecond} // notifications that may get lost
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
