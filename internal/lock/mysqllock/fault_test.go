package mysqllock

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"flashsale/internal/lock"
	"flashsale/internal/lock/locktest"
	"flashsale/internal/servers/servertest"
	"flashsale/migrations"
)

const patience = 20 * time.Second

// The row is locked by the connection: whoever ends it ends the lease.
func TestTheEndOfTheConnectionIsALoss(t *testing.T) {
	dsn, admin := database(t)
	holder := open(t, dsn, Options{TTL: time.Second, Wait: lock.TryOnce})
	first := acquire(t, holder)
	killHolders(t, admin)
	select {
	case <-first.Lost():
	case <-time.After(patience):
		t.Fatal("the holder was not told")
	}
	second := acquire(t, open(t, dsn, Options{}))
	if second.Fence() <= first.Fence() {
		t.Errorf("fence %d after %d, which was rolled back", second.Fence(), first.Fence())
	}
	locktest.Is(t, first.Release(t.Context()), lock.ErrLost)
	if err := second.Release(t.Context()); err != nil {
		t.Errorf("release: %v", err)
	}
}

// A holder of whom MySQL hears nothing, and who lives: its connection ends with
// its idle time, which is the TTL.
func TestASilentHolderLosesTheLock(t *testing.T) {
	dsn, _ := database(t)
	const ttl = 2 * time.Second
	line, near := overLine(t, dsn)
	first := acquire(t, open(t, near, Options{TTL: ttl}))
	start := time.Now()
	line.Disturb(locktest.Disturbance{DropRequests: true})
	second := acquire(t, open(t, dsn, Options{Wait: patience}))
	if took := time.Since(start); took < ttl*9/10 {
		t.Errorf("the lock changed hands after %v of %v", took, ttl)
	}
	select {
	case <-first.Lost():
	default:
		t.Error("another was granted the lock before its holder knew of the loss")
	}
	locktest.Is(t, first.Release(t.Context()), lock.ErrLost)
	if err := second.Release(t.Context()); err != nil {
		t.Errorf("release: %v", err)
	}
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
		waiting := query(t, admin, "SELECT ID FROM information_schema.PROCESSLIST WHERE DB = DATABASE() AND INFO LIKE 'SELECT fence%'")
		if len(waiting) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d still wait", len(waiting))
		}
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Errorf("release: %v", err)
	}
}

func TestMySQLThatIsAwayIsUnavailable(t *testing.T) {
	server := servertest.SQLServer(t)
	admin, err := sqlOpen(t, server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	migrate(t, admin)
	r := open(t, server.DSN(), Options{TTL: 3 * time.Second, Timeout: time.Second})
	lease := acquire(t, r)
	server.Kill()
	_, err = open(t, server.DSN(), Options{Timeout: time.Second}).Acquire(t.Context(), "item")
	locktest.Is(t, err, lock.ErrUnavailable)
	select {
	case <-lease.Lost():
	case <-time.After(patience):
		t.Fatal("the holder was not told")
	}
	locktest.Is(t, lease.Release(t.Context()), lock.ErrLost)

	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	next := acquire(t, r)
	if next.Fence() <= lease.Fence() {
		t.Errorf("fence %d after %d", next.Fence(), lease.Fence())
	}
	if err := next.Release(t.Context()); err != nil {
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
