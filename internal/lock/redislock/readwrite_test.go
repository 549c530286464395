package redislock

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"flashsale/internal/lock"
	"flashsale/internal/lock/locktest"
)

func newReadWrite(t testing.TB, addr string, options Options) *ReadWrite {
	t.Helper()
	rw, err := NewReadWrite(connect(t, addr), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rw.Close() })
	return rw
}

func TestReadersAndWritersConform(t *testing.T) {
	for server, addr := range map[string]string{"miniredis": miniRedis(t), "redis-server": realRedis(t)} {
		for name, side := range map[string]struct {
			features locktest.Features
			of       func(*ReadWrite) lock.Locker
		}{
			"readers": {locktest.Features{Expires: true, Extends: true}, (*ReadWrite).Reader},
			"writers": {locktest.Features{Excludes: true, AcrossProcesses: true, Fence: true, Expires: true, Extends: true}, (*ReadWrite).Writer},
		} {
			t.Run(server+"/"+name, func(t *testing.T) {
				locktest.Run(t, side.features, func(t *testing.T) locktest.Store {
					client := connect(t, addr)
					client.FlushAll(t.Context())
					return locktest.Store{
						New: func(t testing.TB, s locktest.Setting) lock.Locker {
							return side.of(newReadWrite(t, addr, Options{TTL: s.TTL, Wait: s.Wait, Drift: s.Drift}))
						},
						Steal: func(t testing.TB, key string) {
							lockKey, _ := defaultKeys(key)
							if n, err := client.Del(t.Context(), lockKey, readersKey(lockKey)).Result(); n != 1 || err != nil {
								t.Errorf("steal: %d deleted, %v", n, err)
							}
						},
						Residue:   func(t testing.TB, key string) []string { return residue(t, client, key) },
						Overtakes: server == "miniredis",
					}
				})
			})
		}
	}
}

// TestReadWrite shares a server, which each test finds empty.
func TestReadWrite(t *testing.T) {
	addr := realRedis(t)
	for name, test := range map[string]func(*testing.T, string, *redis.Client){
		"readers exclude each other, or a writer is let in beside them": readersShare,
		"readers and writers meet":                                      neverTogether,
		"a stream of readers keeps the writer out":                      writerDoesNotStarve,
		"a writer that gave up or died keeps readers out":               writerThatLeft,
		"one reader's lease ends with another's":                        eachReaderIsExtended,
		"a reader that died keeps the writer out":                       deadReader,
		"a waiter is woken by the poll alone":                           readWriteNotifies,
	} {
		t.Run(name, func(t *testing.T) {
			client := connect(t, addr)
			client.FlushAll(t.Context())
			test(t, addr, client)
			if left := residue(t, client, "item"); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}

func readersShare(t *testing.T, addr string, _ *redis.Client) {
	first, second := newReadWrite(t, addr, Options{Wait: lock.TryOnce}), newReadWrite(t, addr, Options{Wait: lock.TryOnce})
	a, b := acquire(t, first.Reader()), acquire(t, second.Reader())
	for range 2 {
		_, err := second.Writer().Acquire(t.Context(), "item")
		locktest.Is(t, err, lock.ErrNotAcquired)
		release(t, a) // the second time it is over already, and b still reads
	}
	release(t, b)
	w := acquire(t, second.Writer())
	for _, side := range []lock.Locker{first.Reader(), first.Writer(), second.Reader()} {
		_, err := side.Acquire(t.Context(), "item")
		locktest.Is(t, err, lock.ErrNotAcquired)
	}
	release(t, w)
	release(t, acquire(t, first.Reader()))
}

func neverTogether(t *testing.T, addr string, _ *redis.Client) {
	var (
		reading, writing, most atomic.Int32
		all                    sync.WaitGroup
	)
	for range 3 {
		rw := newReadWrite(t, addr, Options{Wait: time.Minute})
		for i := range 4 {
			side, inside := rw.Reader(), &reading
			if i == 0 {
				side, inside = rw.Writer(), &writing
			}
			all.Go(func() {
				for range 15 {
					err := lock.Do(t.Context(), side, "item", func(context.Context, lock.Lease) error {
						inside.Add(1)
						defer inside.Add(-1)
						if w, r := writing.Load(), reading.Load(); w > 1 || w == 1 && r > 0 {
							t.Errorf("%d write while %d read", w, r)
						} else {
							most.Store(max(most.Load(), r))
						}
						time.Sleep(time.Millisecond)
						return nil
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	all.Wait()
	if most.Load() < 2 {
		t.Error("nobody ever read beside another")
	}
}

func writerDoesNotStarve(t *testing.T, addr string, _ *redis.Client) {
	rw := newReadWrite(t, addr, Options{Wait: time.Minute})
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i := range 4 { // there is always one inside
		all.Go(func() {
			time.Sleep(time.Duration(i) * 5 * time.Millisecond)
			for ctx.Err() == nil {
				_ = lock.Do(ctx, rw.Reader(), "item", func(context.Context, lock.Lease) error {
					time.Sleep(20 * time.Millisecond)
					return nil
				})
			}
		})
	}
	writer := newReadWrite(t, addr, Options{Wait: 5 * time.Second})
	for range 3 {
		release(t, acquire(t, writer.Writer()))
	}
	stop()
	all.Wait()
}

func writerThatLeft(t *testing.T, addr string, client *redis.Client) {
	readers := newReadWrite(t, addr, Options{Wait: lock.TryOnce})
	inside := acquire(t, readers.Reader())
	writer := newReadWrite(t, addr, Options{Wait: 30 * time.Millisecond})
	_, err := writer.Writer().Acquire(t.Context(), "item") // gives up
	locktest.Is(t, err, lock.ErrNotAcquired)
	beside := acquire(t, readers.Reader())

	// One that died while it waited has left a note, which ends by itself.
	reply, err := writer.writer.acquire(t.Context(), lockKey, fenceKey, "dead")
	if err != nil || reply.granted || !reply.placed {
		t.Fatalf("%+v, %v", reply, err)
	}
	_, err = readers.Reader().Acquire(t.Context(), "item")
	locktest.Is(t, err, lock.ErrNotAcquired)
	patient := newReadWrite(t, addr, Options{Wait: time.Minute})
	release(t, acquire(t, patient.Reader()))
	release(t, beside)
	release(t, inside)
	eventually(t, "the note has ended", func() bool { return client.Exists(t.Context(), waitingKey(lockKey)).Val() == 0 })
}

func eachReaderIsExtended(t *testing.T, addr string, _ *redis.Client) {
	const ttl = 900 * time.Millisecond
	rw := newReadWrite(t, addr, Options{TTL: ttl, Wait: time.Minute})
	writer := newReadWrite(t, addr, Options{Wait: lock.TryOnce})
	long := acquire(t, rw.Reader())
	for begin := time.Now(); time.Since(begin) < 3*ttl; {
		release(t, acquire(t, rw.Reader())) // others come and go
		_, err := writer.Writer().Acquire(t.Context(), "item")
		locktest.Is(t, err, lock.ErrNotAcquired)
		time.Sleep(ttl / 10)
	}
	release(t, long)
	release(t, acquire(t, writer.Writer()))
}

func deadReader(t *testing.T, addr string, _ *redis.Client) {
	rw := newReadWrite(t, addr, Options{TTL: 600 * time.Millisecond, Wait: time.Minute})
	alive := acquire(t, rw.Reader()) // its extensions must not prolong the other's lease
	if reply, err := rw.reader.acquire(t.Context(), lockKey, fenceKey, "dead"); err != nil || !reply.granted {
		t.Fatal(reply, err)
	}
	time.AfterFunc(1200*time.Millisecond, func() { _ = alive.Release(context.Background()) })
	begin := time.Now()
	release(t, acquire(t, rw.Writer()))
	if took := time.Since(begin); took < 1100*time.Millisecond || took > 5*time.Second {
		t.Errorf("the writer was let in after %v", took)
	}
}

func readWriteNotifies(t *testing.T, addr string, _ *redis.Client) {
	rw := newReadWrite(t, addr, Options{Wait: time.Minute})
	waiting := newReadWrite(t, addr, Options{PollMin: never, PollMax: never, Wait: time.Minute})
	for held, waiter := range map[lock.Locker]lock.Locker{rw.Reader(): waiting.Writer(), rw.Writer(): waiting.Reader()} {
		lease := acquire(t, held)
		granted := waitInBackground(t, waiter, "item")
		eventually(t, "the waiter subscribes", func() bool {
			waiting.listener.mu.Lock()
			defer waiting.listener.mu.Unlock()
			c := waiting.listener.channels[lockKey]
			return c != nil && c.heard && len(c.waiters) > 0
		})
		release(t, lease)
		finish(t, granted)
	}
}
