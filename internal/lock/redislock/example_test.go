package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"flashsale/internal/lock"
	"flashsale/internal/lock/redislock"
	"flashsale/internal/servers"
)

// A sale is sold under its lock: the lease is extended for as long as that
// takes, and ctx ends if it is lost all the same.
func ExampleNewWatchdog() {
	server := servers.EmbeddedRedis() // any Redis will do
	if err := server.Start(context.Background()); err != nil {
		fmt.Println(err)
		return
	}
	defer server.Kill()
	client := redis.NewClient(&redis.Options{
		Addr: server.Addr(), MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true,
	})
	defer client.Close()

	watchdog, err := redislock.NewWatchdog(client, redislock.Options{
		TTL:  10 * time.Second,
		Wait: 500 * time.Millisecond,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer watchdog.Close()

	err = lock.Do(context.Background(), watchdog, "sale-1", func(ctx context.Context, lease lock.Lease) error {
		fmt.Println("sold under a fence:", lease.Fence() > 0)
		return nil
	})
	switch {
	case errors.Is(err, lock.ErrNotAcquired):
		fmt.Println("busy, try again")
	case errors.Is(err, lock.ErrUnavailable):
		fmt.Println("Redis is away")
	case errors.Is(err, lock.ErrLost):
		fmt.Println("the lease ended before the work did")
	default:
		fmt.Println(err)
	}
	// Output:
	// sold under a fence: true
	// <nil>
}

// A wrong option says what it is and what is allowed.
func ExampleOptions() {
	client := redis.NewClient(&redis.Options{})
	defer client.Close()
	_, err := redislock.NewSetNX(client, redislock.Options{
		Keys: func(key string) (lock, fence string) { return "lock:" + key, "fence:" + key },
	})
	fmt.Println(err)
	// Output: redislock: option Keys is ("lock:probe", "fence:probe"), allowed: names with the same {hash tag}, to share a slot
}
