// Package etcdlock holds the lock that lives in etcd.
//
// Who wants a key puts an entry of its own under the key's name, bound to a
// lease that it extends, and waits until no older entry is left: each waiter
// watches the one before it alone, so that a release wakes one, not all. The
// revision in which the entry was created orders the line and is the fence.
//
// What etcd answers has been agreed by a majority of its members: a lock is not
// lost with one of them. The price is three of those agreements a cycle.
package etcdlock
