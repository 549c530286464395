package catalogue

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	allowedPrice   = "a decimal with at most 2 places and a point, such as 19.90"
	allowedWhole   = "digits alone, such as 100"
	allowedInstant = "RFC 3339 with a zone, such as 2030-01-31T20:00:00+08:00, or nothing"
)

// Digits are bounded so that cents and units can't overflow an int64; what is a
// sensible amount is for stock to say.
var (
	pricePattern = regexp.MustCompile(`^([0-9]{1,15})(?:\.([0-9]{1,2}))?$`)
	wholePattern = regexp.MustCompile(`^[0-9]{1,18}$`)
)

// cents reads a price without going through a float: 19.9 is 1990 exactly.
func cents(text string) (int64, bool) {
	match := pricePattern.FindStringSubmatch(text)
	if match == nil {
		return 0, false
	}
	n, err := strconv.ParseInt(match[1]+(match[2] + "00")[:2], 10, 64)
	return n, err == nil
}

func whole(text string) (int64, bool) {
	if !wholePattern.MatchString(text) {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

// instant reads a time in UTC with microseconds, as finely as it is stored. The
// zone is part of RFC 3339; a comma for the point is not, though time.Parse
// takes it.
func instant(text string) (time.Time, bool) {
	if text == "" {
		return time.Time{}, true
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	return t.UTC().Truncate(time.Microsecond), err == nil && !strings.Contains(text, ",")
}
