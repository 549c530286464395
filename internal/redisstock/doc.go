// Package redisstock keeps the stock of running sales in Redis, in two ways.
//
// The guarded counter reads, decides in Go and writes: two scripts with a gap
// between them, as most code does it. Without a lock around it, it loses updates
// and oversells, which is what the variant none is there to show. With a lock
// whose fence it is given, it refuses what an outlived holder writes.
//
// The atomic counter does the same in one script and needs no lock.
//
// Both append what they accept to the outbox, a stream per shard, in the very
// step that deducts: there is no moment at which a unit is gone and the ledger
// will never hear of it. Scripts look at everything that could fail before they
// write anything, so an error reply means that nothing was done; and they know
// a purchase by its ID, so running one again is harmless.
package redisstock
