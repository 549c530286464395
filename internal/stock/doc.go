// Package stock is the domain: what a sale and a purchase are, how a purchase
// is made, how the ledger settles it, and the equations that say whether any
// unit was sold twice or lost. It imports the lock package and the standard
// library alone; Redis, Kafka and SQL are adapters of its ports.
package stock
