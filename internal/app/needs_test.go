package app

import (
	"slices"
	"strings"
	"testing"
)

func TestVariantsAreOfferedWhereTheirServersAre(t *testing.T) {
	for _, test := range []struct {
		need need
		with func(*Config)
	}{
		{needsEtcd, func(c *Config) { c.EtcdEndpoints = []string{"h:1"} }},
		{needsZooKeeper, func(c *Config) { c.ZooKeeperAddrs = []string{"h:1"} }},
		{needsRedlock, func(c *Config) { c.RedlockAddrs = []string{"h:1", "h:2", "h:3"} }},
		{needsMySQL, func(c *Config) { c.MySQLDSN = "u:p@tcp(h:1)/db" }},
		{needsConsent, func(c *Config) { c.AllowBrokenLocks = true }},
		{needsRealRedis, func(c *Config) { c.RedisStandIn = false }},
	} {
		t.Run(test.need.what, func(t *testing.T) {
			alter(t, variant{name: "needy", needs: test.need})
			cfg := Config{MySQLDSN: "sqlite:x", RedisStandIn: true}
			if why := cfg.Lacking()["needy"]; why != "needs "+test.need.what || slices.Contains(cfg.Offered(), "needy") {
				t.Errorf("without: offered %v, lacking %q", cfg.Offered(), why)
			}
			test.with(&cfg)
			if why, lacking := cfg.Lacking()["needy"]; lacking || !slices.Contains(cfg.Offered(), "needy") {
				t.Errorf("with: offered %v, lacking %q", cfg.Offered(), why)
			}
		})
	}
	if !slices.Contains(Variants(), "watchdog") || !slices.Contains(Config{}.Offered(), "watchdog") {
		t.Error("a variant that needs nothing isn't offered")
	}
}

func TestAVariantThatLacksItsServerIsRefusedByName(t *testing.T) {
	alter(t, variant{name: "needy", needs: needsEtcd})
	cfg := embedded(t)
	migrate(t, cfg)
	v, _ := startAPI(t, cfg)
	got := v.do(422, "POST", "/v1/sales", saleOf("phone", "needy", 10), "Authorization", "Bearer "+testToken)
	if !strings.Contains(got.text, "it needs etcd") || !strings.Contains(got.text, "one of none, local, setnx, watchdog") {
		t.Errorf("got %s", got.text)
	}
	if spec := v.do(200, "GET", "/openapi.json", ""); strings.Contains(spec.text, "needy") {
		t.Error("the document offers it")
	}
}

// The broken locks sell as well as any other while nobody crashes, which is why
// nobody gets them unasked.
func TestABrokenLockIsOfferedUnasked(t *testing.T) {
	for _, allowed := range []bool{false, true} {
		cfg := embedded(t)
		cfg.AllowBrokenLocks = allowed
		migrate(t, cfg)
		v, _ := startAPI(t, cfg)
		startSyncer(t, cfg)
		for _, variant := range []string{"setnx-bare", "setnx-expire", "setnx-getdel"} {
			if allowed {
				oneSale(v, "phone-"+variant, variant)
				continue
			}
			got := v.do(422, "POST", "/v1/sales", saleOf("phone", variant, 10), "Authorization", "Bearer "+testToken)
			if !strings.Contains(got.text, "it needs FLASHSALE_ALLOW_BROKEN_LOCKS=true") {
				t.Errorf("got %s", got.text)
			}
		}
	}
}

// alter adds a variant for the time of a test.
func alter(t *testing.T, v variant) {
	was := variants
	variants = append(slices.Clip(was), v)
	t.Cleanup(func() { variants = was })
}

// Sales, scripts and dashboards name variants: none may vanish from the table.
func TestEveryVariantHasItsName(t *testing.T) {
	want := []string{
		"atomic", "etcd", "fair", "function", "local", "mysql-conditional", "mysql-optimistic", "mysql-row", "none", "redlock",
		"setnx", "setnx-bare", "setnx-expire", "setnx-getdel", "striped", "watchdog", "watchdog-cohort", "watchdog-combining", "zookeeper",
	}
	if got := slices.Sorted(slices.Values(Variants())); !slices.Equal(got, want) {
		t.Errorf("variants %v, want %v", got, want)
	}
}
