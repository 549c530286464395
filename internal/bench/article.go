package bench

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"
)

// Article sets what three articles on Redis locks reported beside what was
// measured here.
type Article struct {
	Rows        []ArticleRow `json:"rows"`
	Explanation []string     `json:"explanation"`
	Report      *Report      `json:"report"`
}

// ArticleRow is one of their variants.
type ArticleRow struct {
	Name    string     `json:"name"` // as they call it
	Variant string     `json:"variant"`
	Theirs  Reported   `json:"theirs"`
	Ours    []Measure  `json:"ours"` // one for each number of clients
	Race    ArticleRun `json:"race"`
}

// Reported is what the articles say of a variant, on hardware that they don't.
type Reported struct {
	PerS         float64 `json:"qps"`
	OversellRate float64 `json:"oversell_rate"`
	OfNoLock     float64 `json:"of_no_lock"`
}

// Measure is what was measured here with so many clients.
type Measure struct {
	Clients   int     `json:"clients"`
	PerS      *Figure `json:"accepted_per_s"`
	OfNoLock  *Figure `json:"of_no_lock"`
	P50       *Figure `json:"p50_ms"`
	P99       *Figure `json:"p99_ms"`
	LostShare *Figure `json:"lost_share"`
}

// ArticleRun is what came of the race.
type ArticleRun struct {
	OversellRate *Figure `json:"oversell_rate"`
	Oversold     *Figure `json:"oversold"`
	Unsold       *Figure `json:"unsold"`
}

var articleRows = []ArticleRow{
	{Name: "no lock", Variant: NoLock, Theirs: Reported{PerS: 1500, OversellRate: 0.12}},
	{Name: "SETNX lock", Variant: "setnx", Theirs: Reported{PerS: 800}},
	{Name: "Redisson-style lock, stock preloaded", Variant: "watchdog", Theirs: Reported{PerS: 1200}},
}

// ArticleClients are the numbers of clients that the articles' ratios are looked
// for at: the one at which nobody waits, and one at which everybody does.
var ArticleClients = []int{1, 64}

// ArticlePlan measures the articles' variants.
func ArticlePlan(runs int, d time.Duration) Plan {
	plan := Plan{Runs: runs, WarmUp: max(MinDuration, d/2), Duration: d, RaceUsers: 300, RaceStock: 100}
	for _, row := range articleRows {
		plan.Variants = append(plan.Variants, row.Variant)
	}
	for _, clients := range ArticleClients {
		plan.Loads = append(plan.Loads, Load{Users: clients})
	}
	return plan
}

// NewArticle compares a report of ArticlePlan with the articles.
func NewArticle(r *Report) *Article {
	a := &Article{Report: r}
	for _, row := range articleRows {
		row.Theirs.OfNoLock = round3(row.Theirs.PerS / articleRows[0].Theirs.PerS)
		row.Ours = []Measure{}
		for _, s := range r.Summaries {
			switch {
			case s.Variant != row.Variant || s.Skipped != nil:
			case s.Model == ModelRace:
				row.Race = ArticleRun{OversellRate: s.OversellRate, Oversold: s.Oversold, Unsold: s.Unsold}
			default:
				row.Ours = append(row.Ours, Measure{Clients: s.Users, PerS: s.AcceptedPerS, OfNoLock: s.OfNoLock,
					P50: s.AcceptedLatency.P50, P99: s.AcceptedLatency.P99, LostShare: s.LostShare})
			}
		}
		a.Rows = append(a.Rows, row)
	}
	a.Explanation = a.explain()
	return a
}

func (r ArticleRow) at(clients int) (m Measure) {
	for _, m := range r.Ours {
		if m.Clients == clients {
			return m
		}
	}
	return Measure{Clients: clients}
}

// Write prints the comparison for people.
func (a *Article) Write(w io.Writer) error {
	var b strings.Builder
	say := func(format string, values ...any) { fmt.Fprintf(&b, format+"\n", values...) }
	a.Report.sayPartial(say)
	few, many := ArticleClients[0], ArticleClients[1]
	header := []string{"variant", "theirs: QPS", "of no lock", "oversell"}
	for _, clients := range ArticleClients {
		header = append(header, fmt.Sprintf("ours, %s: accepted/s", clientsText(clients)), "of no lock")
	}
	lines := [][]string{append(header, "oversell in a race")}
	for _, row := range a.Rows {
		lines = append(lines, []string{row.Name + " = " + row.Variant, whole(row.Theirs.PerS), ratio(row.Theirs.OfNoLock), fmt.Sprintf("%.0f %%", 100*row.Theirs.OversellRate),
			row.at(few).PerS.text(whole), row.at(few).OfNoLock.text(ratio), row.at(many).PerS.text(whole), row.at(many).OfNoLock.text(ratio),
			row.Race.OversellRate.percent()})
	}
	writeMarkdownTable(&b, lines)
	say("\nOurs: medians of %d interleaved runs with their range; ratios are taken within a run.\n", a.Report.Parameters.Runs)
	for _, line := range a.Explanation {
		say("- %s", line)
	}
	for _, fault := range a.Report.Faults {
		say("- **Fault**: %s", fault)
	}
	say("")
	for _, line := range a.Report.footer() {
		say("%s", line)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func clientsText(n int) string {
	if n == 1 {
		return "1 client"
	}
	return fmt.Sprintf("%d clients", n)
}

// explain says why ours differ, as far as the figures allow. It is empty when
// something wasn't measured.
func (a *Article) explain() []string {
	few, many := ArticleClients[0], ArticleClients[1]
	none, setnx, watchdog := a.Rows[0], a.Rows[1], a.Rows[2]
	for _, row := range a.Rows {
		if row.at(few).OfNoLock == nil || row.at(many).OfNoLock == nil || row.Race.OversellRate == nil {
			return []string{"Not everything was measured, so there is nothing to compare."}
		}
	}
	servers := "real servers"
	if names := a.Report.standIns(); names != "" {
		servers = "stand-ins for " + names + ", whose round trips cost something else than a server's"
	} else if a.Report.Servers == nil {
		servers = "the servers of the API at " + a.Report.URL
	}
	lines := []string{
		fmt.Sprintf("Measured on %s.", servers),
		fmt.Sprintf("One client: nobody waits, and the ratio is the price of round trips. No lock asks Redis twice (read, write), setnx four times (acquire, read, write, release), watchdog twice (acquire and read, write and release): P50 %s ms without, %s ms with setnx, %s ms with watchdog.",
			fixed(none.at(few).P50.Median), fixed(setnx.at(few).P50.Median), fixed(watchdog.at(few).P50.Median)),
		fmt.Sprintf("%d clients: a lock lets one purchase of the item through at a time, one every %s ms with setnx and every %s ms with watchdog, while no lock serves them side by side: %s a second, of which it loses %s by overwriting. The better a machine serves requests in parallel, the worse a lock's ratio.",
			many, every(setnx.at(many).PerS), every(watchdog.at(many).PerS), whole(none.at(many).PerS.Median), none.at(many).LostShare.percent()),
	}
	s, w := setnx.at(many).OfNoLock.Median, watchdog.at(many).OfNoLock.Median
	order := "no faster than"
	if w > s {
		order = fmt.Sprintf("%.1f times as fast as", w/s)
	}
	lines = append(lines,
		fmt.Sprintf("Theirs are nearest to ours at %s for SETNX (%s against %s) and at %s for the Redisson-style lock (%s against %s). They don't tell their clients, and their third row changes two things at once: the lock, and where the stock is. Here every variant sells from Redis; at %d clients watchdog, woken instead of polling, is %s setnx (theirs: %.1f).",
			setnx.nearest(), ratio(setnx.Theirs.OfNoLock), ratio(setnx.at(setnx.nearestClients()).OfNoLock.Median),
			watchdog.nearest(), ratio(watchdog.Theirs.OfNoLock), ratio(watchdog.at(watchdog.nearestClients()).OfNoLock.Median),
			many, order, watchdog.Theirs.PerS/setnx.Theirs.PerS),
		fmt.Sprintf("Oversell: theirs is %.0f %%, ours %s. The share depends on how many buyers meet: %d users at one instant for %d units can oversell %s at most, and with no lock most of them read the same stock.",
			100*none.Theirs.OversellRate, none.Race.OversellRate.percent(), a.Report.Parameters.RaceUsers, a.Report.Parameters.RaceStock,
			percent(1-float64(a.Report.Parameters.RaceStock)/float64(max(1, a.Report.Parameters.RaceUsers)))),
	)
	return lines
}

// nearestClients is at how many clients our ratio is the nearest to theirs.
func (r ArticleRow) nearestClients() int {
	nearest := ArticleClients[0]
	for _, clients := range ArticleClients {
		if math.Abs(r.at(clients).OfNoLock.Median-r.Theirs.OfNoLock) < math.Abs(r.at(nearest).OfNoLock.Median-r.Theirs.OfNoLock) {
			nearest = clients
		}
	}
	return nearest
}

func (r ArticleRow) nearest() string { return clientsText(r.nearestClients()) }

// every is the time from one sale to the next, in milliseconds.
func every(perS *Figure) string {
	if perS.Median == 0 {
		return "-"
	}
	return fixed(1000 / perS.Median)
}
