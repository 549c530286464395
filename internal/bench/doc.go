// Package bench measures a running API over HTTP and says whether it kept its
// promise. It knows nothing of Redis, Kafka or SQL: what a buyer can't see, it
// learns from the audit.
//
// Two models, because each hides what the other shows. In a race more users
// than there are units start at the same instant and buy once: it shows who
// oversells and what stays unsold, while its throughput means little. In the
// closed model so many users buy again and again from a stock that can't sell
// out: it shows throughput, latency and lost updates, while nothing can be
// oversold.
package bench
