package httpapi

import (
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/gin-gonic/gin"
)

// Keys of a request's context: what fail leaves for the log.
const (
	errorKey = "httpapi.error"
	codeKey  = "httpapi.code"
)

// observe logs each request: what the server failed at as a warning, the rest
// at debug level, since a sale is thousands of them a second. It logs the route,
// never the path, the query or a header: those are the client's to choose.
func (a *api) observe(c *gin.Context) {
	start := time.Now()
	c.Next()
	level, ctx := slog.LevelDebug, c.Request.Context()
	if c.Writer.Status() >= 500 && ctx.Err() == nil { // nobody failed a client that hung up
		level = slog.LevelWarn
	}
	if !a.Logger.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("method", c.Request.Method), slog.String("route", c.FullPath()),
		slog.Int("status", c.Writer.Status()), slog.Duration("took", time.Since(start)),
	}
	if code := c.GetString(codeKey); code != "" {
		attrs = append(attrs, slog.String("code", code))
	}
	if err, ok := c.Value(errorKey).(error); ok && level > slog.LevelDebug {
		attrs = append(attrs, slog.Any("error", err))
	}
	a.Logger.LogAttrs(ctx, level, "request", attrs...)
}

// recover turns a panic into a 500 that says nothing, and a log line that says all.
func (a *api) recover(c *gin.Context) {
	defer func() {
		cause := recover()
		if cause == nil {
			return
		}
		if cause == http.ErrAbortHandler {
			panic(cause)
		}
		a.Logger.Error("panic in a handler", "route", c.FullPath(), "cause", cause, "stack", string(debug.Stack()))
		if c.Writer.Written() {
			panic(http.ErrAbortHandler) // half an answer is out: the client must notice
		}
		a.fail(c, errInternal)
	}()
	c.Next()
}
