package deploy_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"flashsale/internal/app"
	"flashsale/internal/servers/servertest"
)

// alert is a rule of prometheus/alerts.yml.
type alert struct {
	Alert, Expr, For    string
	Labels, Annotations map[string]string
}

func alerts(t *testing.T) (all []alert) {
	t.Helper()
	var file struct {
		Groups []struct{ Rules []alert }
	}
	decode(t, "prometheus/alerts.yml", &file)
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	if len(all) == 0 {
		t.Fatal("no alerts")
	}
	return all
}

func decode(t *testing.T, path string, into any) {
	t.Helper()
	if err := yaml.Unmarshal(read(t, path), into); err != nil {
		t.Fatal(path, err)
	}
}

// promtool calls it, and wants it to be content.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	output, err := exec.Command(servertest.Promtool(t), args...).CombinedOutput()
	if err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, output)
	}
}

func TestPromtoolTakesConfigurationAndRules(t *testing.T) {
	promtool(t, "check", "rules", "prometheus/alerts.yml")
	promtool(t, "check", "config", "prometheus/prometheus.yml", "prometheus/local.yml")
}

// When each alert fires, and when it doesn't.
func TestAlertsFireWhenTheyShould(t *testing.T) {
	promtool(t, "test", "rules", "prometheus/alerts_test.yml")
}

// A test without this alert firing, without it staying quiet, or without the
// case that there are no data, would prove little.
func TestEachAlertIsTestedBothWays(t *testing.T) {
	var file struct {
		Tests []struct {
			Name   string
			Series []any `yaml:"input_series"`
			Checks []struct {
				Alertname string
				Alerts    []any `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	decode(t, "prometheus/alerts_test.yml", &file)
	tested := map[string]bool{} // alert and how
	for _, test := range file.Tests {
		for _, check := range test.Checks {
			switch {
			case len(test.Series) == 0:
				tested[check.Alertname+" without data"] = true
			case len(check.Alerts) > 0:
				tested[check.Alertname+" fires"] = true
			default:
				tested[check.Alertname+" is quiet"] = true
			}
		}
	}
	for _, a := range alerts(t) {
		for _, how := range []string{" fires", " is quiet", " without data"} {
			if !tested[a.Alert+how] {
				t.Errorf("not tested: %s%s", a.Alert, how)
			}
			delete(tested, a.Alert+how)
		}
	}
	for name := range tested {
		t.Errorf("tested, but no alert: %s", name)
	}
}

func TestEachAlertSaysWhatToDo(t *testing.T) {
	guide := string(read(t, "../docs/operations.md"))
	anchors := map[string]string{}
	for _, section := range strings.Split(guide, "\n## ")[1:] {
		heading, text, _ := strings.Cut(section, "\n")
		anchors["docs/operations.md#"+anchor(heading)] = text
	}
	for _, a := range alerts(t) {
		if a.Annotations["summary"] == "" || !slices.Contains([]string{"warning", "critical"}, a.Labels["severity"]) {
			t.Errorf("%s: annotations %q, labels %q", a.Alert, a.Annotations, a.Labels)
		}
		link := a.Annotations["runbook"]
		if text, ok := anchors[link]; !ok {
			t.Errorf("%s: there is no %s", a.Alert, link)
		} else if !strings.Contains(text, a.Alert) {
			t.Errorf("%s: %s does not speak of it", a.Alert, link)
		}
	}
	for link, text := range anchors {
		linked := false
		for _, a := range alerts(t) {
			linked = linked || a.Annotations["runbook"] == link
			if strings.Contains(text, a.Alert) && a.Annotations["runbook"] != link {
				t.Errorf("%s speaks of %s, which links to %s", link, a.Alert, a.Annotations["runbook"])
			}
		}
		if !linked {
			t.Errorf("no alert links to %s", link)
		}
	}
}

// anchor is what a heading's link is called.
func anchor(heading string) string {
	kept := regexp.MustCompile(`[^a-z0-9 -]`).ReplaceAllString(strings.ToLower(heading), "")
	return strings.ReplaceAll(kept, " ", "-")
}

// The thresholds that the sale is held to.
func TestThresholds(t *testing.T) {
	for name, want := range map[string]string{
		"LockWaitIsLong":       "histogram_quantile(0.99, sum by (variant, le) (rate(flashsale_lock_wait_seconds_bucket[1m]))) > 0.5",
		"LockHoldIsLong":       "histogram_quantile(0.99, sum by (variant, le) (rate(flashsale_lock_hold_seconds_bucket[1m]))) > 1",
		"AnswersAreLate":       "histogram_quantile(0.99, sum by (variant, le) (rate(flashsale_purchase_seconds_bucket[1m]))) > 1",
		"LockAcquisitionsFail": `> 0.01`,
	} {
		all := alerts(t)
		i := slices.IndexFunc(all, func(a alert) bool { return a.Alert == name })
		if i < 0 || !strings.HasSuffix(all[i].Expr, want) {
			t.Errorf("%s is not %s", name, want)
		}
	}
}

// Rejected purchases are no alarm where overselling is the lesson, and are
// everywhere else.
func TestOnlyBrokenVariantsMayOversell(t *testing.T) {
	var broken []string
	for _, variant := range app.Variants() {
		if variant == "none" || app.Broken(variant) {
			broken = append(broken, variant)
		}
	}
	for _, a := range alerts(t) {
		if a.Alert == "PurchasesRejected" && !strings.Contains(a.Expr, fmt.Sprintf(`variant!~"%s"`, strings.Join(broken, "|"))) {
			t.Errorf("%s does not leave out exactly %q", a.Expr, broken)
		}
	}
}

// A rate needs two scrapes even when one fails, and a scrape more time than the
// programs give their servers.
func TestScrapesFitTheRules(t *testing.T) {
	const patience = 2 * time.Second // internal/metrics gives up then
	for _, name := range []string{"prometheus.yml", "local.yml"} {
		var config struct {
			Global struct {
				Interval time.Duration `yaml:"scrape_interval"`
				Timeout  time.Duration `yaml:"scrape_timeout"`
			}
			Files []string `yaml:"rule_files"`
			Jobs  []struct {
				Name string `yaml:"job_name"`
				DNS  []struct {
					Names []string
					Port  int
				} `yaml:"dns_sd_configs"`
			} `yaml:"scrape_configs"`
		}
		decode(t, filepath.Join("prometheus", name), &config)
		if g := config.Global; g.Timeout <= patience || g.Timeout > g.Interval || g.Interval > 15*time.Second {
			t.Errorf("%s: every %v, within %v", name, g.Interval, g.Timeout)
		}
		if !slices.Equal(config.Files, []string{"alerts.yml"}) {
			t.Errorf("%s: rules %q", name, config.Files)
		}
		jobs := map[string]bool{}
		for _, job := range config.Jobs {
			jobs[job.Name] = true
			for _, dns := range job.DNS {
				service := strings.TrimPrefix(job.Name, "flashsale-")
				if !slices.Equal(dns.Names, []string{service}) || !listensOn(compose(t).Services[service], dns.Port) {
					t.Errorf("%s: %s is looked for at %v:%d", name, job.Name, dns.Names, dns.Port)
				}
			}
		}
		for _, a := range alerts(t) {
			for _, m := range regexp.MustCompile(`job="([^"]+)"`).FindAllStringSubmatch(a.Expr, -1) {
				if !jobs[m[1]] {
					t.Errorf("%s has no job %s, as %s has it", name, m[1], a.Alert)
				}
			}
		}
	}
}

func listensOn(s service, port int) bool {
	return strings.HasSuffix(s.Environment["FLASHSALE_ADMIN_LISTEN"], ":"+strconv.Itoa(port))
}

// expressions are all that is asked of Prometheus, by where it is asked.
func expressions(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, a := range alerts(t) {
		all["alert "+a.Alert] = a.Expr
	}
	for _, p := range dashboard(t).Panels {
		for _, target := range p.Targets {
			all["panel "+p.Title+" "+target.RefID] = plain(target.Expr)
		}
	}
	return all
}

// Prometheus 2 writes le="1", Prometheus 3 le="1.0".
func TestNoExpressionAsksForABucketByItsBound(t *testing.T) {
	for where, expr := range expressions(t) {
		if regexp.MustCompile(`\ble\s*[=!]`).MatchString(expr) {
			t.Errorf("%s: %s", where, expr)
		}
	}
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}
