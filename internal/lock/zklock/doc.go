// Package zklock holds the lock that lives in ZooKeeper.
//
// Who wants a key makes an ephemeral, sequential node below the key's, and waits
// until no node with a lower number is left: each waiter watches the one before
// it alone, so that a release wakes one, not all. The transaction in which the
// node was made is the fence.
//
// A node lives as long as the session that made it, and one session serves all
// leases of a Lock. The answer to a creation can get lost while the node is
// made; so each name holds a token by which its maker finds it again.
package zklock
