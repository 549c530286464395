package rediskey

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
)

func TestKeysAreAContract(t *testing.T) {
	var keys Keys
	for got, want := range map[string]string{
		keys.Sale("phone-1"):                 "fs:{5}:sale:phone-1",
		keys.Buyers("phone-1"):               "fs:{5}:sale:phone-1:buyers",
		keys.Purchases("phone-1"):            "fs:{5}:sale:phone-1:purchases",
		keys.Lock("phone-1"):                 "fs:{5}:lock:phone-1",
		keys.Fence("phone-1"):                "fs:{5}:fence:phone-1",
		keys.Outbox(7):                       "fs:{7}:outbox",
		Keys{Prefix: "demo-1"}.Sale("phone"): "demo-1:{7}:sale:phone",
	} {
		if got != want {
			t.Errorf("key is %s, want %s", got, want)
		}
	}
}

func TestASalesKeysShareASlot(t *testing.T) {
	keys := Keys{Prefix: "x"}
	for n := range 100 {
		id := fmt.Sprint("sale-", n)
		tag := fmt.Sprintf(":{%d}:", Shard(id))
		for _, key := range []string{
			keys.Sale(id), keys.Buyers(id), keys.Purchases(id), keys.Lock(id), keys.Fence(id), keys.Outbox(Shard(id)),
		} {
			if strings.Count(key, tag) != 1 || strings.Count(key, "{") != 1 {
				t.Errorf("%s lacks the tag %s", key, tag)
			}
		}
	}
}

func TestSalesSpreadOverTheShards(t *testing.T) {
	var hits [Shards]int
	for n := range 800 {
		hits[Shard(fmt.Sprint("item-", n))]++
	}
	if slices.Min(hits[:]) < 50 {
		t.Errorf("sales per shard: %v, want about 100 each", hits)
	}
}

func TestPatternMatchesOneInstallation(t *testing.T) {
	keys := Keys{Prefix: "fs"}
	shard := Shard("phone")
	for key, want := range map[string]bool{
		keys.Sale("phone"):                    true,
		keys.Outbox(shard):                    true,
		keys.Outbox((shard + 1) % Shards):     false,
		Keys{Prefix: "fs-demo"}.Sale("phone"): false,
		Keys{Prefix: "xfs"}.Sale("phone"):     false,
		"fs:" + keys.Sale("phone"):            false,
		Keys{Prefix: "f?"}.Sale("phone"):      false,
	} {
		// path.Match reads the same signs as SCAN does; keys have no slash.
		if got, err := path.Match(keys.Pattern(shard), key); got != want || err != nil {
			t.Errorf("%s matches %s: %v (%v)", keys.Pattern(shard), key, got, err)
		}
	}
	wild := Keys{Prefix: `a*[b]?\`}
	if got, err := path.Match(wild.Pattern(shard), wild.Outbox(shard)); !got || err != nil {
		t.Errorf("a prefix of signs does not match itself: %v", err)
	}
	if got, _ := path.Match(wild.Pattern(shard), strings.Replace(wild.Outbox(shard), "*", "other", 1)); got {
		t.Error("a star in the prefix matches anything")
	}
}
