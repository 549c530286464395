// Package stock is the domain: what a sale and a purchase are, how a purchase
// is made, how the ledger settles it, and the equations that say whether any
// unit was sold twice or lost. It imports the lock package and the standard
// library alone; Redis, Kafka and SQL are adapters of its ports.
//
// # What a purchase costs
//
// What guards a sale is a Variant: a lock of package lock around a counter, or
// a counter that needs none.
//
//	                     round trips to a store           fails when, or costs
//	a lock, Direct       the lock's + 2, one buyer at     a crowd: each waits for all before it
//	                     a time
//	a lock, Combining    the same, shared by all buyers   one of the shared answers is lost: each of
//	                     of a process that wait           the batch has to ask again
//	atomic counter       1                                Redis loses what it acknowledged
//	striped counter      those of a lock + 2, eight      a segment runs out: two locks then, and
//	                     buyers at a time                 at the very end all eight
//	conditional, SQL     a transaction; the row's lock    a crowd: each waits for the row
//	optimistic, SQL      the same, as often as others     a crowd: most are told that it is busy
//	                     were faster
package stock
