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

// scenario is one entry of options.scenarios. Which fields it may have depends
// on its executor.
type scenario struct {
	Executor     string            `json:"executor"`
	Exec         string            `json:"exec"`
	StartTime    duration          `json:"startTime"`
	GracefulStop duration          `json:"gracefulStop"`
	Tags         map[string]string `json:"tags"`

	VUs              int      `json:"vus"`
	Iterations       int      `json:"iterations"`
	MaxDuration      duration `json:"maxDuration"`
	Duration         duration `json:"duration"`
	StartVUs         int      `json:"startVUs"`
	Stages           []stage  `json:"stages"`
	GracefulRampDown duration `json:"gracefulRampDown"`
	Rate             int      `json:"rate"`
	StartRate        int      `json:"startRate"`
	TimeUnit         duration `json:"timeUnit"`
	PreAllocatedVUs  int      `json:"preAllocatedVUs"`
	MaxVUs           int      `json:"maxVUs"`

	name string
}

// stage is one of ramping executors: the target is reached at its end, in a straight line.
type stage struct {
	Target   int      `json:"target"`
	Duration duration `json:"duration"`
}

// UnmarshalJSON fills in k6's defaults first, and refuses fields of other executors.
func (s *scenario) UnmarshalJSON(data []byte) error {
	type plain scenario
	p := plain{
		Exec: "default", VUs: 1, Iterations: 1, StartVUs: 1, MaxDuration: duration(10 * time.Minute),
		GracefulStop: duration(30 * time.Second), GracefulRampDown: duration(30 * time.Second), TimeUnit: duration(time.Second),
	}
	if err := strictly(data, &p); err != nil {
		return err
	}
	*s = scenario(p)
	known, ok := executors[s.Executor]
	if !ok {
		return fmt.Errorf("executor %q is not in scriptcheck (there are %v)", s.Executor, slices.Sorted(maps.Keys(executors)))
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(data, &given); err != nil {
		return err
	}
	for name := range given {
		if !slices.Contains(commonFields, name) && !slices.Contains(known.fields, name) {
			return fmt.Errorf("%s has no %q", s.Executor, name)
		}
	}
	for _, name := range known.required {
		if given[name] == nil {
			return fmt.Errorf("%s needs %q", s.Executor, name)
		}
	}
	if given["maxVUs"] == nil {
		s.MaxVUs = s.PreAllocatedVUs
	}
	return nil
}

var commonFields = []string{"executor", "exec", "startTime", "gracefulStop", "tags"}

// length is how long new iterations begin, from the start of the scenario.
func (s *scenario) length() time.Duration {
	total := time.Duration(0)
	switch {
	case len(s.Stages) > 0:
		for _, stage := range s.Stages {
			total += time.Duration(stage.Duration)
		}
	case s.Duration > 0:
		total = time.Duration(s.Duration)
	default:
		total = time.Duration(s.MaxDuration)
	}
	return total
}

// end is when the last iteration is stopped at the latest, from the start of the scenarios.
func (s *scenario) end() time.Duration {
	return time.Duration(s.StartTime) + s.length() + time.Duration(s.GracefulStop)
}

// peak is how many VUs it needs at once. Where k6 makes more VUs while it runs,
// up to maxVUs, scriptcheck has all of them from the start.
func (s *scenario) peak() int {
	switch s.Executor {
	case "constant-arrival-rate", "ramping-arrival-rate":
		return s.MaxVUs
	case "ramping-vus":
		most := s.StartVUs
		for _, stage := range s.Stages {
			most = max(most, stage.Target)
		}
		return most
	}
	return s.VUs
}

// at is the straight line through the stages, from first, at a time since the start.
func (s *scenario) at(elapsed time.Duration, first int) float64 {
	from := float64(first)
	for _, stage := range s.Stages {
		length := time.Duration(stage.Duration)
		if elapsed < length {
			return from + (float64(stage.Target)-from)*float64(elapsed)/float64(length)
		}
		elapsed, from = elapsed-length, float64(stage.Target)
	}
	return from
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
	case s.StartTime < 0 || s.GracefulStop < 0 || s.GracefulRampDown < 0:
		return errors.New("startTime, gracefulStop and gracefulRampDown are 0 or more")
	case s.length() < time.Second:
		return errors.New("duration and maxDuration are 1s or more")
	case s.peak() < 1 || s.Iterations < 1 || s.StartVUs < 0:
		return errors.New("VUs and iterations are 1 or more")
	case s.Executor == "shared-iterations" && s.Iterations < s.VUs:
		return errors.New("shared iterations are at least as many as VUs")
	case s.Executor == "constant-arrival-rate" && s.Rate < 1, s.StartRate < 0, s.TimeUnit <= 0:
		return errors.New("rate and timeUnit are greater than 0")
	case s.PreAllocatedVUs > s.MaxVUs:
		return errors.New("maxVUs is at least preAllocatedVUs")
	case s.end() > cfg.maxDuration:
		return fmt.Errorf("may end %v after the start; allowed here: %v", s.end(), cfg.maxDuration)
	}
	for _, stage := range s.Stages {
		if stage.Target < 0 || stage.Duration < 0 {
			return errors.New("targets and durations of stages are 0 or more")
		}
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
				sum += other.peak()
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
