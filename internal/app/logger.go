package app

import (
	"io"
	"log/slog"
)

// NewLogger returns the logger that c asks for.
func (c Config) NewLogger(w io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: c.LogLevel}
	if c.LogFormat == "text" {
		return slog.New(slog.NewTextHandler(w, options))
	}
	return slog.New(slog.NewJSONHandler(w, options))
}
