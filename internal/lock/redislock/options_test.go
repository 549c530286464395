package redislock

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"flashsale/internal/lock"
	"flashsale/internal/rediskey"
)

func TestWrongOptionIsAccepted(t *testing.T) {
	keys := func(lock, fence string) func(string) (string, string) {
		return func(string) (string, string) { return lock, fence }
	}
	tests := []struct {
		name    string
		options Options
		says    []string // value and what is allowed
	}{
		{"TTL too short", Options{TTL: time.Millisecond}, []string{"TTL", "1ms", "10ms to 1h"}},
		{"TTL too long", Options{TTL: 2 * time.Hour}, []string{"TTL", "2h0m0s", "10ms to 1h"}},
		{"TTL not in milliseconds", Options{TTL: time.Second + 1}, []string{"TTL", "1.000000001s", "whole milliseconds"}},
		{"TTL negative", Options{TTL: -time.Second}, []string{"TTL", "-1s", "10ms"}},
		{"drift eats the lease", Options{TTL: time.Second, Drift: time.Second}, []string{"Drift", "1s", "250ms"}},
		{"drift with the wrong sign", Options{Drift: -1}, []string{"Drift", "-1ns", "0s"}},
		{"poll too fast", Options{PollMin: time.Microsecond}, []string{"PollMin", "1µs", "1ms"}},
		{"poll bounds swapped", Options{PollMin: 20 * time.Millisecond, PollMax: 10 * time.Millisecond}, []string{"PollMax", "10ms", "20ms"}},
		{"release timeout negative", Options{ReleaseTimeout: -1}, []string{"ReleaseTimeout", "-1ns", "more than 0s"}},
		{"tries negative", Options{Tries: -1}, []string{"Tries", "-1", "0 or more"}},
		{"replicas negative", Options{Replicas: -1}, []string{"Replicas", "-1", "0 or more"}},
		{"waits for replicas past the lease", Options{TTL: time.Second, ReplicaTimeout: time.Second}, []string{"ReplicaTimeout", "1s", "500ms"}},
		{"waits for replicas for ever", Options{ReplicaTimeout: time.Nanosecond}, []string{"ReplicaTimeout", "1ns", "1ms"}},
		{"no lock name", Options{Keys: keys("", "{a}f")}, []string{"Keys", "{a}f", "two different"}},
		{"one name for both", Options{Keys: keys("{a}", "{a}")}, []string{"Keys", "{a}", "two different"}},
		{"no hash tag", Options{Keys: keys("lock", "fence")}, []string{"Keys", "lock", "hash tag"}},
		{"two slots", Options{Keys: keys("{a}lock", "{b}lock")}, []string{"Keys", "{b}lock", "hash tag"}},
		{"empty hash tag", Options{Keys: keys("{}lock", "{}fence")}, []string{"Keys", "{}lock", "hash tag"}},
	}
	client := redis.NewClient(&redis.Options{})
	defer client.Close()
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := NewSetNX(client, test.options)
			if _, err2 := NewWatchdog(client, test.options); (err == nil) != (err2 == nil) {
				t.Errorf("the variants differ: %v, %v", err, err2)
			}
			if err == nil {
				t.Fatal("accepted")
			}
			for _, part := range test.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
		})
	}
	if _, err := NewSetNX(nil, Options{}); err == nil {
		t.Error("accepted no client")
	}
}

func TestDefaultsAreRefused(t *testing.T) {
	client := redis.NewClient(&redis.Options{})
	defer client.Close()
	names := rediskey.Keys{Prefix: "fs"}
	for _, options := range []Options{
		{},
		{Wait: lock.TryOnce},
		{TTL: minTTL},
		{TTL: maxTTL},
		{PollMin: time.Second},
		{PollMax: time.Millisecond},
		{Keys: func(key string) (string, string) { return names.Lock(key), names.Fence(key) }},
	} {
		if _, err := NewSetNX(client, options); err != nil {
			t.Error(err)
		}
		if w, err := NewWatchdog(client, options); err != nil {
			t.Error(err)
		} else if w.TTL < minTTL || w.PollMin > w.PollMax {
			t.Errorf("defaults of %+v are %+v", options, w.Options)
		}
	}
}
