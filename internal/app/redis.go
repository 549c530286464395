package app

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// With these a purchase is answered within seconds, whatever Redis does: it may
// be gone (dialling fails at once) or hang (each exchange ends after redisTimeout).
const (
	redisDialTimeout = time.Second
	redisTimeout     = 1500 * time.Millisecond
)

// newRedis connects at the first command. Clients never repeat a command by
// themselves: whoever sends one knows whether that is harmless, and has to see
// the first error, not the last.
// timeout bounds an exchange and the wait for a connection; 0 = redisTimeout.
func newRedis(addrs []string, pool int, timeout time.Duration) (redis.UniversalClient, error) {
	quietRedis()
	o := &redis.UniversalOptions{Addrs: addrs}
	if len(addrs) == 1 && strings.Contains(addrs[0], "://") {
		u, err := redis.ParseURL(addrs[0])
		if err != nil {
			return nil, fmt.Errorf("app: Redis address: %w", err)
		}
		o.Addrs, o.Username, o.Password, o.DB, o.TLSConfig = []string{u.Addr}, u.Username, u.Password, u.DB, u.TLSConfig
	}
	o.MaxRetries, o.DialerRetries, o.MaxRedirects = -1, 1, 3
	timeout = cmp.Or(timeout, redisTimeout)
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = redisDialTimeout, timeout, timeout, timeout
	o.ContextTimeoutEnabled = true
	o.PoolSize = pool
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return redis.NewUniversalClient(o), nil
}

// purchasePool is for as many purchases at once as one hot item has use for.
func purchasePool() int { return max(64, 16*runtime.GOMAXPROCS(0)) }

// quietRedis keeps the client from writing to stderr on its own: every error
// reaches a caller, who logs what matters.
var quietRedis = sync.OnceFunc(func() { redis.SetLogger(silence{}) })

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}
