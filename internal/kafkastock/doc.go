// Package kafkastock carries stock events through Kafka: a publisher that the
// relay uses, a source that the syncer uses, and what creates, removes and
// reaches the topics.
//
// Delivery is at least once. A publish that ended in an error may still have
// happened, and a fetched message comes again after a crash or a rebalance;
// the ledger is what makes the whole exactly once.
package kafkastock
