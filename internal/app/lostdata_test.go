package app

import (
	"context"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"flashsale/internal/rediskey"
	"flashsale/internal/redisstock"
)

func TestASaleThatRedisLostIsNotSoldAgainEmbedded(t *testing.T) { lostData(t, embedded(t)) }
func TestASaleThatRedisLostIsNotSoldAgain(t *testing.T)         { lostData(t, real(t)) }

// lostData sells a sale out, and lets Redis come back empty: the request that made
// the sale must not put its whole stock there again, nor that of one of which the
// ledger knows no purchase: it may have had some.
func lostData(t *testing.T, cfg Config) {
	migrate(t, cfg)
	v, _ := startAPI(t, cfg)
	startSyncer(t, cfg)
	bearer := []string{"Authorization", "Bearer " + testToken}
	v.createSale("lost", "atomic", 2)
	v.createSale("lost-unsold", "atomic", 2)
	for _, user := range []string{"ann", "bob"} {
		v.do(201, "POST", "/v1/sales/lost/purchases", purchaseOf(user, 1))
	}
	if audit := v.do(200, "GET", "/v1/sales/lost/audit?wait=30s", "").body; audit["settled"] != true || audit["persisted"] != 2.0 {
		t.Fatalf("before: %v", audit)
	}

	client := redis.NewClient(&redis.Options{Addr: cfg.RedisAddrs[0]})
	defer client.Close()
	if err := redisstock.New(client, redisstock.Options{Keys: rediskey.Keys{Prefix: cfg.Prefix}}).Purge(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}

	refused := v.do(409, "POST", "/v1/sales", saleOf("lost", "atomic", 2), bearer...)
	if detail, _ := refused.body["detail"].(string); refused.code() != "sale_exists" || !strings.Contains(detail, "has sold units") {
		t.Errorf("refused with %s", refused.text)
	}
	for range 2 { // and again
		if got := v.do(503, "POST", "/v1/sales/lost/purchases", purchaseOf("cat", 1)); got.code() != "unavailable" {
			t.Errorf("after it: %s", got.text)
		}
		v.do(409, "POST", "/v1/sales", saleOf("lost", "atomic", 2), bearer...)
	}
	unknown := v.do(409, "POST", "/v1/sales", saleOf("lost-unsold", "atomic", 2), bearer...)
	if detail, _ := unknown.body["detail"].(string); unknown.code() != "sale_exists" || !strings.Contains(detail, "preload --again") {
		t.Errorf("refused with %s", unknown.text)
	}
	v.do(503, "POST", "/v1/sales/lost-unsold/purchases", purchaseOf("cat", 1))
}
