package redislock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"flashsale/internal/lock"
	"flashsale/internal/lock/locktest"
)

func TestDriversTimeoutLooksLikeTheCallers(t *testing.T) {
	for _, cause := range []error{context.DeadlineExceeded, context.Canceled, io.EOF} {
		locktest.Is(t, lock.Unavailable(fmt.Errorf("dial: %w", cause)), lock.ErrUnavailable)
	}
	if err := lock.Unavailable(io.EOF); !errors.Is(err, io.EOF) {
		t.Errorf("%v hides its cause", err)
	}
}

func TestCommandThatMayHaveRunIsTakenForOneThatDidNot(t *testing.T) {
	tests := []struct {
		name string
		err  error
		want bool
	}{
		{"reply cut off", io.EOF, true},
		{"reset", &net.OpError{Op: "read", Err: errLink}, true},
		{"timed out", context.DeadlineExceeded, true},
		{"never connected", fmt.Errorf("pool: %w", &net.OpError{Op: "dial", Err: errLink}), false},
		{"no connection free", redis.ErrPoolTimeout, false},
		{"refused by the server", redis.Nil, false},
	}
	for _, test := range tests {
		if got := mayHaveRun(test.err); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

// due is a context whose deadline has come, and which has not noticed yet.
type due struct{ context.Context }

func (due) Deadline() (time.Time, bool) { return time.Now().Add(-time.Nanosecond), true }

func TestContextsDeadlineLooksLikeAnUnavailableStore(t *testing.T) {
	if err := lock.ContextError(due{context.Background()}); err != context.DeadlineExceeded {
		t.Errorf("got %v", err)
	}
	if err := lock.ContextError(t.Context()); err != nil {
		t.Errorf("got %v", err)
	}
}
