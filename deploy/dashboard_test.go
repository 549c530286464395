package deploy_test

import (
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const dashboardFile = "grafana/dashboards/flashsale.json"

// board is as much of a Grafana dashboard as the tests look at.
type board struct {
	UID, Title string
	Templating struct {
		List []struct{ Name, Type, Definition string }
	}
	Panels []panel
}

type panel struct {
	ID         int
	Type       string
	Title      string
	Datasource source
	GridPos    struct{ X, Y, W, H int }
	Targets    []struct {
		RefID      string
		Expr       string
		Datasource source
	}
	FieldConfig struct {
		Defaults struct {
			Thresholds struct {
				Steps []struct{ Value *float64 }
			}
		}
	}
}

type source struct{ Type, UID string }

func dashboard(t *testing.T) (b board) {
	t.Helper()
	if err := json.Unmarshal(read(t, dashboardFile), &b); err != nil {
		t.Fatal(err)
	}
	if len(b.Panels) == 0 {
		t.Fatal("no panels")
	}
	return b
}

// plain is an expression with what Grafana puts in for its variables.
func plain(expr string) string {
	return strings.NewReplacer("$__rate_interval", "4s", "$variant", ".*").Replace(expr)
}

func TestDashboardIsWellFormed(t *testing.T) {
	b := dashboard(t)
	if b.UID == "" || b.Title == "" {
		t.Errorf("uid %q, title %q", b.UID, b.Title)
	}
	want := source{"prometheus", "${datasource}"}
	ids := map[int]string{}
	for i, p := range b.Panels {
		if other, taken := ids[p.ID]; taken || p.ID == 0 {
			t.Errorf("%s and %s have the ID %d", p.Title, other, p.ID)
		}
		ids[p.ID] = p.Title
		if p.Type == "row" {
			continue
		}
		if p.Title == "" || p.Datasource != want || len(p.Targets) == 0 {
			t.Errorf("panel %d: %+v", p.ID, p)
		}
		for _, target := range p.Targets {
			if target.Expr == "" || target.RefID == "" || target.Datasource != want {
				t.Errorf("%s: target %+v", p.Title, target)
			}
			for _, variable := range regexp.MustCompile(`\$\{?(\w+)`).FindAllStringSubmatch(target.Expr, -1) {
				if variable[1] != "__rate_interval" && !slices.ContainsFunc(b.Templating.List, func(v struct{ Name, Type, Definition string }) bool { return v.Name == variable[1] }) {
					t.Errorf("%s: there is no variable %s", p.Title, variable[0])
				}
			}
		}
		for _, other := range b.Panels[:i] {
			g, o := p.GridPos, other.GridPos
			if g.X < o.X+o.W && o.X < g.X+g.W && g.Y < o.Y+o.H && o.Y < g.Y+g.H {
				t.Errorf("%s lies over %s", p.Title, other.Title)
			}
		}
		if p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("%s is outside", p.Title)
		}
	}
}

// Prometheus' own parser reads the expressions, as rules that nobody keeps.
func TestPromtoolTakesTheDashboardsExpressions(t *testing.T) {
	type rule struct{ Record, Expr string }
	var rules []rule
	for _, p := range dashboard(t).Panels {
		for _, target := range p.Targets {
			rules = append(rules, rule{fmt.Sprintf("panel_%d_%s", p.ID, target.RefID), plain(target.Expr)})
		}
	}
	text, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": rules}}})
	if err != nil {
		t.Fatal(err)
	}
	promtool(t, "check", "rules", write(t, filepath.Join(t.TempDir(), "dashboard.yml"), string(text)))
}

// A curve that crosses its line is an alert.
func TestDashboardsThresholdsAreTheAlerts(t *testing.T) {
	metric := regexp.MustCompile(`flashsale_[a-z_]+`)
	compared := 0
	for _, p := range dashboard(t).Panels {
		if p.Type != "timeseries" {
			continue
		}
		for _, step := range p.FieldConfig.Defaults.Thresholds.Steps {
			if step.Value == nil {
				continue
			}
			compared++
			threshold := regexp.MustCompile(`> ` + regexp.QuoteMeta(strconv.FormatFloat(*step.Value, 'f', -1, 64)) + `\b`)
			if !slices.ContainsFunc(alerts(t), func(a alert) bool {
				return metric.FindString(a.Expr) == metric.FindString(p.Targets[0].Expr) && threshold.MatchString(a.Expr)
			}) {
				t.Errorf("%s: no alert has the threshold %v", p.Title, *step.Value)
			}
		}
	}
	if compared < 4 {
		t.Errorf("%d thresholds", compared)
	}
}

// The dashboard finds its Prometheus, and Grafana finds the dashboard.
func TestGrafanaIsProvisioned(t *testing.T) {
	c := compose(t)
	var sources struct {
		Datasources []struct {
			UID, Type, URL string
			IsDefault      bool `yaml:"isDefault"`
		}
	}
	decode(t, "grafana/provisioning/datasources/prometheus.yaml", &sources)
	if len(sources.Datasources) != 1 {
		t.Fatalf("%+v", sources)
	}
	s := sources.Datasources[0]
	port := strings.TrimPrefix(s.URL, "http://prometheus:")
	if s.Type != "prometheus" || !s.IsDefault || !slices.ContainsFunc(c.Services["prometheus"].Ports, func(p string) bool { return strings.HasSuffix(p, ":"+port) }) {
		t.Errorf("%+v, Prometheus publishes %q", s, c.Services["prometheus"].Ports)
	}
	if !strings.Contains(string(read(t, dashboardFile)), fmt.Sprintf(`"value": %q`, s.UID)) {
		t.Errorf("the dashboard's data source is another than %q", s.UID)
	}

	var providers struct {
		Providers []struct{ Options struct{ Path string } }
	}
	decode(t, "grafana/provisioning/dashboards/flashsale.yaml", &providers)
	if len(providers.Providers) != 1 {
		t.Fatalf("%+v", providers)
	}
	folder := providers.Providers[0].Options.Path
	grafana := c.Services["grafana"]
	for _, mount := range []string{"./grafana/dashboards:" + folder + ":ro", "./grafana/provisioning:/etc/grafana/provisioning:ro"} {
		if !slices.Contains(grafana.Volumes, mount) {
			t.Errorf("no mount %s in %q", mount, grafana.Volumes)
		}
	}
	if home := grafana.Environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]; home != path.Join(folder, path.Base(dashboardFile)) {
		t.Errorf("the first page is %s", home)
	}
	if !slices.Contains(c.Services["prometheus"].Volumes, "./prometheus:/etc/prometheus:ro") { // the image reads prometheus.yml there
		t.Errorf("Prometheus has %q", c.Services["prometheus"].Volumes)
	}
}
