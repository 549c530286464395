package redislock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"flashsale/internal/lock"
)

// Function is SetNX as a library of functions that lives in Redis: it is part of
// the data there, so that it is still known after a restart or a failover, and
// can be called by whatever speaks to Redis.
//
// Protects against:  all that SetNX does; scripts that a restart or a failover has forgotten.
// Still fails when:  as SetNX: the work takes longer than the TTL, and a crowd polls unfairly.
// Fixed by:          Watchdog.
//
// It needs Redis 7 or Valkey. The library is loaded when a call doesn't find it
// (the first one ever, or one after FUNCTION FLUSH), and then the libraries of
// earlier versions are deleted. Programs of an earlier version that still run
// load theirs again when they miss it, and leave the later one alone.
type Function struct{ *store }

// NewFunction makes a Function on one Redis, or Redis Cluster; the client should
// be as for NewSetNX.
func NewFunction(client redis.UniversalClient, options Options) (*Function, error) {
	store, err := newStore(client, options, pollOnly)
	if err != nil {
		return nil, err
	}
	store.speak(func(t tokens) protocol { return functions{t} })
	return &Function{store}, nil
}

var _ lock.Locker = (*Function)(nil)

// Acquire polls until the lock is granted or the wait is over.
func (f *Function) Acquire(ctx context.Context, key string) (lock.Lease, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c := f.claim(key)
	won, err := c.win(ctx, time.Now().Add(f.Wait), nil)
	if err != nil {
		return nil, err
	}
	return &setNXLease{lease: newLease(c, won, nil)}, nil
}

const (
	libraries = "flashsale_lock_"

	// libraryVersion is part of the library's name, and of its functions'. It
	// grows whenever one of the three scripts changes.
	libraryVersion = 4
)

var library = libraries + strconv.Itoa(libraryVersion)

// librarySource makes functions of the scripts.
func librarySource() string {
	var s strings.Builder
	fmt.Fprintf(&s, "#!lua name=%s\n", library)
	for _, f := range []struct{ name, source string }{
		{"acquire", acquireSource}, {"extend", extendSource}, {"release", releaseSource},
	} {
		fmt.Fprintf(&s, "redis.register_function('%s_%s', function(KEYS, ARGV)\n%s\nend)\n", library, f.name, f.source)
	}
	return s.String()
}

// functions is the protocol of tokens with functions in the place of scripts.
type functions struct{ tokens }

var _ protocol = functions{}

func (f functions) acquire(ctx context.Context, lockKey, fenceKey, token string) (answer, error) {
	return parseAnswer(f.call(ctx, "acquire", []string{lockKey, fenceKey},
		token, f.ttl.Milliseconds(), fenceTTL.Milliseconds()).Result())
}

func (f functions) extend(ctx context.Context, lockKey, token string) (bool, error) {
	return f.call(ctx, "extend", []string{lockKey}, token, f.ttl.Milliseconds()).Bool()
}

func (f functions) remove(ctx context.Context, lockKey, token, channel string) (bool, error) {
	if channel == "" {
		if deleted, supported, err := f.deletes.run(ctx, lockKey, token); supported {
			return deleted, err
		}
	}
	return f.call(ctx, "release", []string{lockKey}, token, channel).Bool()
}

// call calls a function, and loads the library if there is none.
func (f functions) call(ctx context.Context, name string, keys []string, args ...any) *redis.Cmd {
	cmd := f.client.FCall(ctx, library+"_"+name, keys, args...)
	if err := cmd.Err(); err == nil || !missing(err) {
		return cmd
	}
	if err := f.load(ctx); err != nil {
		failed := redis.NewCmd(ctx)
		failed.SetErr(err)
		return failed
	}
	return f.client.FCall(ctx, library+"_"+name, keys, args...)
}

func missing(err error) bool {
	reply, ok := errors.AsType[redis.Error](err)
	return ok && strings.Contains(reply.Error(), "Function not found")
}

// load loads the library into every server that a key may be on.
func (f functions) load(ctx context.Context) error {
	if cluster, ok := f.client.(*redis.ClusterClient); ok {
		return cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error { return loadLibrary(ctx, node) })
	}
	return loadLibrary(ctx, f.client)
}

func loadLibrary(ctx context.Context, server redis.Cmdable) error {
	if err := server.FunctionLoadReplace(ctx, librarySource()).Err(); err != nil {
		return err
	}
	// Old libraries do no harm: an error is not worth failing for.
	old, _ := server.FunctionList(ctx, redis.FunctionListQuery{LibraryNamePattern: libraries + "*"}).Result()
	for _, l := range old {
		version, err := strconv.Atoi(strings.TrimPrefix(l.Name, libraries))
		if err == nil && version < libraryVersion {
			_ = server.FunctionDelete(ctx, l.Name).Err()
		}
	}
	return nil
}
