package lock

import (
	"fmt"
	"time"
)

// Timing is what the options of locks in a store have in common. The zero value
// is the default.
type Timing struct {
	TTL     time.Duration // of a lease, unless it is extended; 0 = 30 s
	Wait    time.Duration // for a lock that somebody else holds; 0 = DefaultWait, negative = TryOnce
	Drift   time.Duration // how much earlier than the store a holder takes its lease to have ended; 0 = TTL/100 + 2 ms
	Timeout time.Duration // of each request, and of a release as a whole; 0 = 2 s
}

// WithDefaults replaces zeros. A store that counts TTLs in some unit gets one of
// whole units, rounded up.
func (t Timing) WithDefaults(unit time.Duration) Timing {
	or := func(value *time.Duration, otherwise time.Duration) {
		if *value == 0 {
			*value = otherwise
		}
	}
	or(&t.TTL, 30*time.Second)
	if rest := t.TTL % unit; rest > 0 {
		t.TTL += unit - rest
	}
	or(&t.Wait, DefaultWait)
	or(&t.Drift, t.TTL/100+2*time.Millisecond)
	or(&t.Timeout, 2*time.Second)
	return t
}

const maxTTL = time.Hour

// Validate says what is wrong, as an option of driver's; TTLs from least to 1 h are
// allowed.
func (t Timing) Validate(driver string, least time.Duration) error {
	switch {
	case t.TTL < least || t.TTL > maxTTL:
		return InvalidOption(driver, "TTL", t.TTL, fmt.Sprintf("%v to %v", least, maxTTL))
	case t.Drift < 0 || t.Drift > t.TTL/4:
		return InvalidOption(driver, "Drift", t.Drift, fmt.Sprintf("0s to a quarter of TTL, %v", t.TTL/4))
	case t.Timeout < 0:
		return InvalidOption(driver, "Timeout", t.Timeout, "more than 0s")
	}
	return nil
}

// InvalidOption says what an option is, and what would be allowed.
func InvalidOption(driver, name string, value any, allowed string) error {
	return fmt.Errorf("%s: option %s is %v, allowed: %s", driver, name, value, allowed)
}
