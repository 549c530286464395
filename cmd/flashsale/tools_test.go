package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"flashsale/internal/app"
	"flashsale/internal/kafkastock"
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
	deductions := kafkastock.Names(prefix).Deductions
	for _, want := range []string{"topics created: " + deductions + ", " + deductions, "tables were up to date, version "} {
		if s := do("migrate"); s.err != nil || !strings.Contains(s.stdout.String(), want) {
			t.Fatalf("%v\n%s", s.err, s.stdout.String())
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

func TestMigrateSaysWhatItDid(t *testing.T) {
	for change, want := range map[app.SchemaChange]string{
		{From: 0, To: 2}: "tables created, version 2",
		{From: 1, To: 2}: "tables upgraded from version 1 to 2",
		{From: 2, To: 2}: "tables were up to date, version 2",
	} {
		if got := schemaDone(change); got != want {
			t.Errorf("%+v: %s", change, got)
		}
	}
}

// What the API wouldn't sell isn't loaded. None of these calls gets to a server.
func TestPreloadRefusesWhatIsNotOffered(t *testing.T) {
	file := write(t, "item_id,title,price,stock,per_user_limit,variant,starts_at,ends_at\nlamp,Lamp,1,10,1,setnx-bare,,\nmug,Mug,1,10,1,etcd,,\npen,Pen,1,0,1,atomic,,\n")
	bare, etcd := `line 2: variant "setnx-bare" is not offered, it needs FLASHSALE_ALLOW_BROKEN_LOCKS=true; allowed: one of none, local, setnx,`, `line 3: variant "etcd" is not offered, it needs etcd; allowed: one of none, `
	for _, test := range []struct {
		set   string
		wants []string
	}{
		{"FLASHSALE_PREFIX=fs", []string{bare, etcd, "3 problems"}},
		{"FLASHSALE_ALLOW_BROKEN_LOCKS=true", []string{etcd, "one of none, local, setnx-bare,", "2 problems"}},
		{"FLASHSALE_ETCD_ENDPOINTS=127.0.0.1:1", []string{bare, "2 problems"}},
	} {
		s := call(t.Context(), test.set, "preload", file)
		for _, want := range test.wants {
			if s.err == nil || !strings.Contains(s.err.Error(), want) {
				t.Errorf("%s: %v\nwant %s", test.set, s.err, want)
			}
		}
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
