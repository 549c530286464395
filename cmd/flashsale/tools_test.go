package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"flashsale/internal/app"
	"flashsale/internal/servers/servertest"
	"flashsale/internal/sqlstock"
)

// TestTools prepares an installation as an operator does: doctor, migrate,
// preload, audit.
func TestTools(t *testing.T) {
	addr, brokers, dsn := servertest.Redis(t), servertest.Kafka(t), servertest.SQL(t)
	if sqlstock.IsStandIn(dsn) {
		t.Skip("needs MySQL: its stand-in is refused by these commands")
	}
	prefix := servertest.Prefix(t)
	environment := []string{"FLASHSALE_REDIS_ADDRS=" + addr, "FLASHSALE_KAFKA_BROKERS=" + strings.Join(brokers, ","), "FLASHSALE_MYSQL_DSN=" + dsn, "FLASHSALE_PREFIX=" + prefix}
	do := func(args ...string) *session { return call(t.Context(), append(environment, args...)...) }
	t.Cleanup(func() { removeInstallation(t, environment) })

	if s := do("doctor"); s.err == nil || report(s.err, &s.stderr) != exitFault ||
		!strings.Contains(s.err.Error(), "kafka: ") || !strings.Contains(s.err.Error(), "sql: ") || !strings.Contains(s.stdout.String(), "redis") {
		t.Errorf("doctor before migrate: %v\n%s", s.err, s.stdout.String())
	}
	for range 2 {
		if s := do("migrate"); s.err != nil {
			t.Fatal(s.err)
		}
	}
	s := do("doctor", "--json")
	var findings map[string]finding
	if err := json.Unmarshal([]byte(s.stdout.String()), &findings); err != nil || s.err != nil || len(findings) != 3 {
		t.Errorf("doctor: %v, %v\n%s", s.err, err, s.stdout.String())
	}
	for name, f := range findings {
		if f.Version == "" || f.Problem != "" {
			t.Errorf("%s: %+v", name, f)
		}
	}

	bad := write(t, "item_id,title,price,stock,per_user_limit,variant,starts_at,ends_at\nlamp,Lamp,1,10,1,atomic,,\nmug,Mug,1.999,0,1,atomic,,\n")
	if s := do("preload", bad); s.err == nil || report(s.err, &s.stderr) != exitFault || s.stdout.String() != "" ||
		!strings.Contains(s.err.Error(), `line 3: price "1.999"`) || !strings.Contains(s.err.Error(), `line 3: stock "0"`) {
		t.Errorf("bad catalogue: %v", s.err)
	}
	if s := do("audit", "lamp"); s.err == nil || !strings.Contains(s.err.Error(), "no such sale") {
		t.Errorf("audit of a sale that was refused: %v", s.err)
	}

	good := write(t, "item_id,title,price,stock,per_user_limit,variant,starts_at,ends_at\nlamp,Lamp,1,10,1,atomic,,\n")
	if s := do("preload", good); s.err != nil || s.stdout.String() != "1 loaded: lamp\n" {
		t.Errorf("preload: %v\n%s", s.err, s.stdout.String())
	}
	if s := do("preload", "--from-db", "--json"); s.err != nil || strings.Join(strings.Fields(s.stdout.String()), "") != `{"loaded":[],"there":["lamp"],"closed":[]}` {
		t.Errorf("preload --from-db: %v\n%s", s.err, s.stdout.String())
	}
	if s := do("audit", "lamp", "--wait", "--deep"); s.err != nil || !strings.HasSuffix(s.stdout.String(), "settled and exact\n") {
		t.Errorf("audit: %v\n%s", s.err, s.stdout.String())
	}
	var audit map[string]any
	if s := do("audit", "lamp", "--json"); s.err != nil || json.Unmarshal([]byte(s.stdout.String()), &audit) != nil || audit["initial"] != 10.0 || audit["settled"] != true {
		t.Errorf("audit --json: %v\n%s", s.err, s.stdout.String())
	}
}

func write(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "catalogue.csv")
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

func removeInstallation(t *testing.T, environment []string) {
	cfg, err := installation{}.config(func(name string) string {
		for _, entry := range environment {
			if n, value, _ := strings.Cut(entry, "="); n == name {
				return value
			}
		}
		return ""
	})
	if err != nil {
		t.Fatal(err)
	}
	tools, err := app.OpenInstallation(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer tools.Close()
	if err := tools.Remove(context.Background(), []string{"lamp"}); err != nil {
		t.Error(err)
	}
}
