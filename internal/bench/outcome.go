package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// outcome is what one request came to.
type outcome int

const (
	failed outcome = iota
	accepted
	soldOut
	busy
)

// answer is one response, reduced to what is counted.
type answer struct {
	outcome outcome
	failure string // of a failed one: "503 unavailable", "transport: ..."

	asked, held bool // the response told how long a lock was waited for, and held
	wait, hold  time.Duration
}

// read reduces a response. Only the outcomes that a sale is meant to have are
// something else than failed, however well formed the answer is.
func read(response *http.Response) answer {
	var a answer
	a.wait, a.hold, a.asked, a.held = lockTiming(response.Header.Values("Server-Timing"))
	code := response.Header.Get("X-Outcome")
	body, err := io.ReadAll(io.LimitReader(response.Body, 64<<10)) // read, so that the connection is kept
	if err != nil {
		a.failure = "answer cut short: " + err.Error()
		return a
	}
	if code == "" {
		var problem struct {
			Code string `json:"code"`
		}
		if json.Unmarshal(body, &problem) == nil {
			code = problem.Code
		}
	}
	switch {
	case response.StatusCode == http.StatusCreated:
		a.outcome = accepted
	case response.StatusCode == http.StatusConflict && code == "sold_out":
		a.outcome = soldOut
	case response.StatusCode == http.StatusLocked:
		a.outcome = busy
	default:
		a.failure = strings.TrimSpace(strconv.Itoa(response.StatusCode) + " " + code)
	}
	return a
}

// lockTiming takes lock_wait and lock_hold, in milliseconds, from Server-Timing
// headers. Who was refused the lock has waited for it without holding it.
func lockTiming(headers []string) (wait, hold time.Duration, hasWait, hasHold bool) {
	for _, header := range headers {
		for metric := range strings.SplitSeq(header, ",") {
			name, parameters, _ := strings.Cut(strings.TrimSpace(metric), ";")
			for parameter := range strings.SplitSeq(parameters, ";") {
				key, value, _ := strings.Cut(strings.TrimSpace(parameter), "=")
				milliseconds, err := strconv.ParseFloat(strings.Trim(value, `"`), 64)
				if key != "dur" || err != nil || milliseconds < 0 {
					continue
				}
				d := time.Duration(milliseconds * float64(time.Millisecond))
				switch name {
				case "lock_wait":
					wait, hasWait = d, true
				case "lock_hold":
					hold, hasHold = d, true
				}
			}
		}
	}
	return wait, hold, hasWait, hasHold
}

// failures counts failed requests by kind and keeps the first few kinds: a
// thousand lines of the same trouble say no more than one.
type failures struct {
	mu    sync.Mutex
	kinds []string // in order of appearance
	times map[string]int64
}

const (
	maxKinds      = 5
	maxKindLength = 200
)

func (f *failures) add(kind string) {
	if len(kind) > maxKindLength {
		kind = kind[:maxKindLength] + "..."
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Contains(f.kinds, kind) {
		if len(f.kinds) == maxKinds {
			return
		}
		f.kinds = append(f.kinds, kind)
	}
	if f.times == nil {
		f.times = make(map[string]int64)
	}
	f.times[kind]++
}

func (f *failures) list() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []string
	for _, kind := range f.kinds {
		list = append(list, fmt.Sprintf("%dx %s", f.times[kind], kind))
	}
	return list
}
