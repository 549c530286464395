package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"
)

// options are those of k6 that scriptcheck implements. Others are refused.
type options struct {
	Scenarios         map[string]*scenario         `json:"scenarios"`
	Thresholds        map[string][]thresholdOption `json:"thresholds"`
	SetupTimeout      duration                     `json:"setupTimeout"`
	TeardownTimeout   duration                     `json:"teardownTimeout"`
	SummaryTrendStats []string                     `json:"summaryTrendStats"`
}

// scenario is one entry of options.scenarios.
type scenario struct {
	Executor     string            `json:"executor"`
	Exec         string            `json:"exec"`
	VUs          int               `json:"vus"`
	Iterations   int               `json:"iterations"`
	StartTime    duration          `json:"startTime"`
	MaxDuration  duration          `json:"maxDuration"`
	GracefulStop duration          `json:"gracefulStop"`
	Tags         map[string]string `json:"tags"`

	name string
}

// UnmarshalJSON fills in k6's defaults first.
func (s *scenario) UnmarshalJSON(data []byte) error {
	type plain scenario
	p := plain{Exec: "default", VUs: 1, Iterations: 1, MaxDuration: duration(10 * time.Minute), GracefulStop: duration(30 * time.Second)}
	if err := strictly(data, &p); err != nil {
		return err
	}
	*s = scenario(p)
	return nil
}

// end is when the last iteration is stopped at the latest, from the start of the scenarios.
func (s *scenario) end() time.Duration {
	return time.Duration(s.StartTime + s.MaxDuration + s.GracefulStop)
}

// thresholdOption is an expression; the object form without abortOnFail is one too.
type thresholdOption string

func (t *thresholdOption) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, (*string)(t)) == nil {
		return nil
	}
	var object struct {
		Threshold string `json:"threshold"`
	}
	err := strictly(data, &object)
	*t = thresholdOption(object.Threshold)
	return err
}

// duration is "1m30s" or a number of milliseconds.
type duration time.Duration

func (d *duration) UnmarshalJSON(data []byte) error {
	var ms float64
	if json.Unmarshal(data, &ms) == nil {
		*d = duration(ms * float64(time.Millisecond))
		return nil
	}
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	parsed, err := time.ParseDuration(text)
	*d = duration(parsed)
	return err
}

func strictly(data []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	return dec.Decode(into)
}

var scenarioName = regexp.MustCompile(`^[0-9a-zA-Z_-]+$`)

// parseOptions reads and judges what the script exports as options.
func parseOptions(data []byte, cfg config) (*options, error) {
	o := &options{SetupTimeout: duration(time.Minute), TeardownTimeout: duration(time.Minute)}
	if err := strictly(data, o); err != nil {
		return nil, fmt.Errorf("options that are wrong, or that scriptcheck does not have: %w", err)
	}
	if len(o.SummaryTrendStats) == 0 {
		o.SummaryTrendStats = []string{"avg", "min", "med", "max", "p(90)", "p(95)"}
	}
	for _, stat := range o.SummaryTrendStats {
		if _, err := (&metric{kind: trend}).figure(stat, time.Second); err != nil || stat == "rate" || stat == "value" {
			return nil, fmt.Errorf("summaryTrendStats: %q is none", stat)
		}
	}
	if len(o.Scenarios) == 0 {
		return nil, errors.New("options.scenarios is missing")
	}
	for name, s := range o.Scenarios {
		if s == nil || !scenarioName.MatchString(name) {
			return nil, fmt.Errorf("scenario %q: a name has letters, digits, _ and -, and its value is an object", name)
		}
		s.name = name
		if err := s.validate(cfg); err != nil {
			return nil, fmt.Errorf("scenario %q: %w", name, err)
		}
	}
	if peak := o.peakVUs(); peak > cfg.maxVUs {
		return nil, fmt.Errorf("needs %d VUs at once; allowed here: %d", peak, cfg.maxVUs)
	}
	return o, nil
}

func (s *scenario) validate(cfg config) error {
	switch {
	case s.Executor != "per-vu-iterations":
		return fmt.Errorf("executor %q is not in scriptcheck (only per-vu-iterations is)", s.Executor)
	case s.VUs < 1 || s.Iterations < 1:
		return errors.New("vus and iterations are 1 or more")
	case s.StartTime < 0 || s.MaxDuration < duration(time.Second) || s.GracefulStop < 0:
		return errors.New("startTime and gracefulStop are 0 or more, maxDuration 1s or more")
	case s.end() > cfg.maxDuration:
		return fmt.Errorf("may end %v after the start; allowed here: %v", s.end(), cfg.maxDuration)
	}
	return nil
}

// peakVUs is the largest number of VUs that scenarios may need at the same time.
func (o *options) peakVUs() int {
	peak := 0
	for at := range maps.Values(o.Scenarios) {
		sum := 0
		for other := range maps.Values(o.Scenarios) {
			if other.StartTime <= at.StartTime && time.Duration(at.StartTime) < other.end() {
				sum += other.VUs
			}
		}
		peak = max(peak, sum)
	}
	return peak
}

// parseThresholds needs the metrics that the script's init code declared.
func (o *options) parseThresholds(r *registry) ([]*threshold, error) {
	var all []*threshold
	for _, name := range slices.Sorted(maps.Keys(o.Thresholds)) {
		m, err := r.sub(name)
		if err != nil {
			return nil, fmt.Errorf("thresholds: %w", err)
		}
		for _, source := range o.Thresholds[name] {
			t, err := parseThreshold(m, string(source))
			if err != nil {
				return nil, err
			}
			all = append(all, t)
		}
	}
	return all, nil
}
