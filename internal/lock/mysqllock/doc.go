// Package mysqllock holds the lock that lives in MySQL: a row that a transaction
// has locked, for as long as its connection lives.
//
// MySQL has locks by name as well, GET_LOCK. They have no place here: such a
// lock belongs to a connection just like a row's, but it is none of InnoDB's, so
// it has no fence that is counted under it, no order with the transactions that
// it is to guard, and its names are the whole server's.
package mysqllock
