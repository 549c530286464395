// Package fallback decides what a lock does while its store is down: a circuit
// breaker in front of any lock.Locker, which then says no at once, or degrades to
// another lock.
//
// Only lock.ErrUnavailable counts as a failure of the store. A caller who found
// the lock held has had an answer, and one whose context ended hasn't waited for
// one, so neither opens the breaker. That also means that the store's client needs
// timeouts shorter than its callers' deadlines: behind a store that hangs, callers
// who always leave first are never told ErrUnavailable.
//
// # What degrading gives up
//
// A degraded lease is worth no more than the lock that it comes from. With
// lock.Local, the default, it excludes the goroutines of one process and nobody
// else. Each process opens its breaker by itself, so there can be at one time
//
//   - in one process: one holder of a key, across every switch, since all of its
//     callers pass one queue first, whichever lock they get then;
//   - in two processes: two holders, both degraded, or one degraded and one with a
//     lease of the store, from before it went down, from after it came back, or
//     because only the other process had lost its way to the store.
//
// So the last line of defence has to be in the database that is written to: a
// conditional update (UPDATE ... WHERE remaining >= n), a unique index, a counter in
// MySQL that needs no fence. Where there is none, use Reject.
//
// The fence of a degraded lease is 0, "none". Its own lock's number would be from
// another sequence than the store's: too small, and a guarded value refuses a rightful
// holder; too large, and it refuses every holder after Redis is back. Nor does a fence
// of an earlier lease keep its holder from writing beside a degraded one, since nothing
// with a larger number has been written.
//
// A lock.Cohort belongs on top of a Fallback, not below it: the queue in front of
// Degrade would leave it no waiters to hand a lease to.
//
// A lease stays what it was when it was granted: the breaker's opening ends none, and
// its closing doesn't end a degraded one. A request that a hanging store has taken
// in may still be granted when it goes on; if it can't be given back, the key is
// held until the TTL has passed, for which callers see contention.
package fallback
