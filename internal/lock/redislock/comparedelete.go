package redislock

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// compareDelete deletes a key if it has a value in one plain command, where the
// server knows one: DELEX (Redis 8.4) or DELIFEQ (Valkey 9). It does what
// release.lua does, but for the publishing, and needs no script.
type compareDelete struct {
	client  redis.UniversalClient
	looking sync.Mutex
	command atomic.Pointer[string] // nil: not known yet; "": there is none
}

// run is false, false when there is no such command.
func (d *compareDelete) run(ctx context.Context, key, value string) (deleted, supported bool, err error) {
	var args []any
	switch command := d.find(ctx); command {
	case "DELEX":
		args = []any{command, key, "IFEQ", value}
	case "DELIFEQ":
		args = []any{command, key, value}
	default:
		return false, false, nil
	}
	deleted, err = d.client.Do(ctx, args...).Bool()
	if reply, ok := errors.AsType[redis.Error](err); ok && strings.Contains(reply.Error(), "unknown command") {
		d.command.Store(new(string)) // an older server has taken over
		return false, false, nil
	}
	return deleted, true, err
}

// find asks once, but for an answer that doesn't come. Who comes while another
// asks is told that there is none.
func (d *compareDelete) find(ctx context.Context) string {
	if command := d.command.Load(); command != nil {
		return *command
	}
	if !d.looking.TryLock() {
		return ""
	}
	defer d.looking.Unlock()
	known, err := d.client.Do(ctx, "COMMAND", "INFO", "DELEX", "DELIFEQ").Slice()
	if _, reply := errors.AsType[redis.Error](err); err != nil && !reply {
		return ""
	}
	command := ""
	for i, name := range []string{"DELEX", "DELIFEQ"} {
		if command == "" && i < len(known) && known[i] != nil {
			command = name
		}
	}
	d.command.Store(&command)
	return command
}
