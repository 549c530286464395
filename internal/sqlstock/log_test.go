package sqlstock_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"flashsale/internal/sqlstock"
	"flashsale/internal/stock"
)

func TestLogIsQuietAndNamesNoBuyer(t *testing.T) {
	for name, c := range map[string]struct {
		level slog.Level
		slow  time.Duration
		want  string // "": nothing at all
	}{
		"info":             {slog.LevelInfo, time.Hour, ""},
		"debug":            {slog.LevelDebug, time.Hour, "INSERT INTO `purchases`"},
		"slow, at warning": {slog.LevelWarn, time.Nanosecond, "slow sql"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			logger := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: c.level}))
			db := migrated(t, sqliteDSN(t), sqlstock.Options{Logger: logger, SlowQuery: c.slow})
			insertSale(t, db, "s", 5)
			e := event("s", 1)
			e.UserID = "eve@secret"
			if _, err := db.Settle(t.Context(), []stock.Event{e}); err != nil {
				t.Fatal(err)
			}
			if _, err := db.Sale(t.Context(), "nope"); err == nil {
				t.Fatal("found")
			}
			switch got := out.String(); {
			case c.want == "" && got != "", !strings.Contains(got, c.want), strings.Contains(got, "eve@secret"):
				t.Errorf("logged %q", got)
			}
		})
	}
}
