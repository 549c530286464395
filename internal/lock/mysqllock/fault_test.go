package mysqllock

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"flashsale/internal/lock"
	"flashsale/internal/lock/locktest"
	"flashsale/internal/servers"
	"flashsale/internal/servers/servertest"
	"flashsale/migrations"
)

const patience = 20 * time.Second

// The row is locked by the connection: whoever ends it ends the lease.
func TestTheEndOfTheConnectionIsALoss(t *testing.T) {
	dsn, admin := database(t)
	for name, ttl := range map[string]time.Duration{"told by the next ping": 2 * time.Second, "told by the release": time.Hour} {
		t.Run(name, func(t *testing.T) {
			holder := open(t, dsn, Options{TTL: ttl, Wait: lock.TryOnce})
			first := acquire(t, holder)
			killHolders(t, admin)
			if ttl < time.Hour {
				locktest.Bounded(t, patience, "the loss", func() { <-first.Lost() })
			}
			locktest.Is(t, first.Release(t.Context()), lock.ErrLost)
			if stats := holder.db.Stats(); stats.InUse > 0 {
				t.Errorf("%d connections are in use", stats.InUse)
			}
			locktest.Next(t, open(t, dsn, Options{}), first) // though its number was rolled back
		})
	}
}

// A ping fails once and the lock is gone, and a release cuts none off.
func TestPing(t *testing.T) {
	dsn, admin := database(t)
	r := open(t, dsn, Options{TTL: time.Hour})
	held := acquire(t, r).(*lease)
	released, cancel := context.WithCancel(t.Context())
	cancel()
	if length, err := held.extend(released); length != held.length() || err != nil {
		t.Errorf("%v, %v", length, err)
	}
	killHolders(t, admin)
	_, err := held.extend(t.Context())
	locktest.Is(t, err, lock.ErrLost)
	locktest.Is(t, held.Release(t.Context()), lock.ErrLost)
}

// A holder of whom MySQL hears nothing, and who lives: its connection ends with
// its idle time, which is the TTL.
func TestASilentHolderLosesTheLock(t *testing.T) {
	dsn, _ := database(t)
	const ttl = 4 * time.Second
	line, near := overLine(t, dsn)
	start := time.Now() // before MySQL heard of the holder for the last time
	first := acquire(t, open(t, near, Options{TTL: ttl, Drift: ttl / 4}))
	line.Disturb(locktest.Disturbance{DropRequests: true})
	locktest.TakeOver(t, open(t, dsn, Options{Wait: patience}), first)
	if took := time.Since(start); took < ttl*9/10 {
		t.Errorf("the lock changed hands after %v of %v", took, ttl)
	}
	locktest.Is(t, first.Release(t.Context()), lock.ErrLost)
}

func TestTheFenceGrowsThoughTheClockWentBack(t *testing.T) {
	dsn, admin := database(t)
	const ahead = 1 << 60 // of any clock's microseconds
	if _, err := admin.ExecContext(t.Context(), "INSERT INTO flashsale_locks (name, fence) VALUES ('item', ?)", int64(ahead)); err != nil {
		t.Fatal(err)
	}
	lease := acquire(t, open(t, dsn, Options{}))
	if lease.Fence() != ahead+1 {
		t.Errorf("fence %d after %d", lease.Fence(), int64(ahead))
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Errorf("release: %v", err)
	}
}

// A waiter that gave up must not get the row later, when it is nobody's use.
func TestAWaiterThatGaveUpWaitsNoMore(t *testing.T) {
	dsn, admin := database(t)
	lease := acquire(t, open(t, dsn, Options{}))
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		_, err := open(t, dsn, Options{Wait: time.Minute}).Acquire(ctx, "item")
		cancel()
		locktest.Is(t, err, context.DeadlineExceeded)
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		left := query(t, admin, waiting)
		if len(left) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d still wait", len(left))
		}
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Errorf("release: %v", err)
	}
}

func TestMySQLGoesAway(t *testing.T) {
	locktest.Away[servers.Database]{
		Server: func(t testing.TB) servers.Database {
			server := servertest.SQLServer(t)
			migrate(t, connect(t, server.DSN()))
			return server
		},
		Open: func(t testing.TB, server servers.Database, s locktest.Setting, timeout time.Duration) lock.Locker {
			return open(t, server.DSN(), Options{TTL: s.TTL, Wait: s.Wait, Timeout: timeout})
		},
		Waits: func(t testing.TB, server servers.Database) func() bool {
			admin := connect(t, server.DSN())
			return func() bool { return len(query(t, admin, waiting)) > 0 }
		},
	}.Run(t)
}

// Each key takes a connection only while it is held or waited for.
func TestAFailedAcquisitionKeepsItsConnection(t *testing.T) {
	dsn, _ := database(t)
	held := acquire(t, open(t, dsn, Options{}))
	line, near := overLine(t, dsn)
	r := open(t, near, Options{Wait: lock.TryOnce, Timeout: timeout})
	free := func(want error, key string) {
		t.Helper()
		_, err := r.Acquire(t.Context(), key)
		locktest.Is(t, err, want)
		if stats := r.db.Stats(); stats.InUse > 0 {
			t.Errorf("%d connections are in use", stats.InUse)
		}
	}
	free(lock.ErrNotAcquired, "item") // as the row is taken
	other, err := r.Acquire(t.Context(), "other")
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Release(t.Context()); err != nil { // and leaves an idle connection
		t.Errorf("release: %v", err)
	}
	line.Disturb(locktest.Disturbance{DropReplies: true})
	free(lock.ErrUnavailable, "other") // as it asks for the connection's number
	if err := held.Release(t.Context()); err != nil {
		t.Errorf("release: %v", err)
	}
}

// All new names are in one gap of the index: whoever locks it is in the way of
// everybody who makes a row.
func TestNewKeysAreInEachOthersWay(t *testing.T) {
	dsn, admin := database(t)
	for range 5 {
		var all sync.WaitGroup
		r := open(t, dsn, Options{Wait: lock.TryOnce})
		for key := range 24 {
			all.Go(func() {
				lease, err := r.Acquire(t.Context(), strconv.Itoa(key))
				if err != nil {
					t.Error(err)
				} else if err := lease.Release(t.Context()); err != nil {
					t.Errorf("release: %v", err)
				}
			})
		}
		all.Wait()
		if _, err := admin.ExecContext(t.Context(), "TRUNCATE flashsale_locks"); err != nil {
			t.Fatal(err)
		}
	}
}

// Another made the row before, and holds it for longer than MySQL lets wait: that
// is for the next attempt to find out.
func TestANewKeyIsTakenByAnother(t *testing.T) {
	dsn, _ := database(t)
	held := acquire(t, open(t, dsn, Options{}))
	r := open(t, dsn, Options{Wait: lock.TryOnce})
	conn, _, err := r.connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer discard(conn)
	if err := (&lease{Row: r, name: "item", conn: conn}).insertRow(t.Context()); err != nil {
		t.Error(err)
	}
	if err := held.Release(t.Context()); err != nil {
		t.Errorf("release: %v", err)
	}
}

// Without the table nobody gets a lock, and is told what makes it.
func TestTheTableIsMissing(t *testing.T) {
	dsn, admin := database(t)
	if _, err := admin.ExecContext(t.Context(), "DROP TABLE flashsale_locks"); err != nil {
		t.Fatal(err)
	}
	r := open(t, dsn, Options{})
	_, err := r.Acquire(t.Context(), "item")
	locktest.Is(t, err, lock.ErrUnavailable)
	if !strings.Contains(err.Error(), "flashsale migrate") {
		t.Errorf("got %v", err)
	}
	if err := migrations.DownTo(t.Context(), admin, migrations.MySQL, 0); err != nil {
		t.Fatal(err)
	}
	migrate(t, admin)
	if err := acquire(t, r).Release(t.Context()); err != nil {
		t.Errorf("release: %v", err)
	}
}

// A demo takes along what it made, and nothing of its neighbours.
func TestPurgeDeletesTheRowsOfAPrefix(t *testing.T) {
	dsn, admin := database(t)
	for _, prefix := range []string{"a:", "ab:"} {
		if err := acquire(t, open(t, dsn, Options{Prefix: prefix})).Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := open(t, dsn, Options{Prefix: "a:"}).Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := query(t, admin, "SELECT name FROM flashsale_locks"); len(left) != 1 || left[0] != "ab:item" {
		t.Errorf("left: %q", left)
	}
}

func TestWrongOptionsAreRefused(t *testing.T) {
	for name, o := range map[string]Options{
		"TTL": {TTL: -time.Second}, "long TTL": {TTL: 2 * time.Hour}, "Drift": {TTL: 4 * time.Second, Drift: 2 * time.Second},
		"Timeout": {Timeout: -1}, "Connections": {Connections: -1},
	} {
		if _, err := Open("u@tcp(127.0.0.1:1)/db", o); err == nil {
			t.Errorf("%s is allowed", name)
		}
	}
	if _, err := Open("nonsense", Options{}); err == nil {
		t.Error("a wrong DSN is allowed")
	}
}

// overLine is the DSN by which the database is reached over a line.
func overLine(t testing.TB, dsn string) (line *locktest.Link, near string) {
	t.Helper()
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	line = locktest.NewLink(t, config.Addr)
	config.Addr = line.Addr()
	return line, config.FormatDSN()
}

func acquire(t testing.TB, r *Row) lock.Lease {
	t.Helper()
	lease, err := r.Acquire(t.Context(), "item")
	if err != nil {
		t.Fatal(err)
	}
	return lease
}
