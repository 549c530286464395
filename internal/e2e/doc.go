// Package e2e holds no code, only tests: the built programs api and syncer as
// child processes, on real servers, while one of them is killed, stopped, paused
// or full. Whatever happens, a purchase that was answered 201 is in the ledger
// once, and one that was refused is not.
//
// The tests need processes and signals, and a real SQL server, since the
// programs take no other: without one they are skipped, and counted as such.
package e2e
