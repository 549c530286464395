// Package redislock holds the locks that live in Redis, one file a variant, the
// scripts beside them.
//
// All share the same way to ask: a claim has one token for all its attempts, so
// that a grant whose answer was lost is found again by the next attempt, or
// given back when there is none. What can't be known in time is never guessed:
// an error of Redis is lock.ErrUnavailable, never contention, and a lock whose
// delete could not be sent frees itself when its TTL has passed.
package redislock
