// Package rediskey names everything that the system keeps in Redis, so that the
// lock and the counter of one sale share a hash slot on Redis Cluster without
// knowing of each other.
package rediskey

import (
	"hash/fnv"
	"strconv"
	"strings"
)

// Shards is the number of outbox streams. A sale's shard is part of each of its
// keys as hash tag, so that one script can reach all of them; changing the
// number moves every key, so it is a constant.
const Shards = 8

// DefaultPrefix is the prefix of an installation that has Redis to itself.
const DefaultPrefix = "fs"

// Keys builds the keys of one installation. The zero value uses DefaultPrefix.
type Keys struct{ Prefix string }

// Shard is FNV-1a(key) mod Shards.
func Shard(key string) int {
	h := fnv.New32a()
	h.Write([]byte(key)) // never fails
	return int(h.Sum32() % Shards)
}

// Sale is the hash that holds a sale's terms and counters.
func (k Keys) Sale(saleID string) string { return k.of(Shard(saleID), "sale:"+saleID) }

// Buyers is the hash user ID -> live purchase ID.
func (k Keys) Buyers(saleID string) string { return k.Sale(saleID) + ":buyers" }

// Purchases is the hash purchase ID -> the stored answer.
func (k Keys) Purchases(saleID string) string { return k.Sale(saleID) + ":purchases" }

// Lock and Fence are the keys of the lock that guards key.
func (k Keys) Lock(key string) string  { return k.of(Shard(key), "lock:"+key) }
func (k Keys) Fence(key string) string { return k.of(Shard(key), "fence:"+key) }

// Outbox is the stream of one shard.
func (k Keys) Outbox(shard int) string { return k.of(shard, "outbox") }

// Pattern matches the keys of one shard, and none of another installation, in
// SCAN. Characters of the prefix that mean something there are escaped.
func (k Keys) Pattern(shard int) string {
	return globEscape.Replace(k.of(shard, "")) + "*"
}

var globEscape = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`)

func (k Keys) of(shard int, name string) string {
	prefix := k.Prefix
	if prefix == "" {
		prefix = DefaultPrefix
	}
	return prefix + ":{" + strconv.Itoa(shard) + "}:" + name
}
