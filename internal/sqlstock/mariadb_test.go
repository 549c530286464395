package sqlstock_test

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

// mariaDB is a MariaDB of the tests' own.
type mariaDB struct {
	dir  string
	port int
	cmd  *exec.Cmd
}

var (
	sharedOnce sync.Once
	shared     *mariaDB
	sharedErr  error
	databases  atomic.Int64
)

func TestMain(m *testing.M) {
	code := m.Run()
	if shared != nil {
		shared.remove()
	}
	os.Exit(code)
}

// mariaDSN is the DSN of a fresh, empty database.
func mariaDSN(t testing.TB) string {
	t.Helper()
	sharedOnce.Do(func() { shared, sharedErr = newMariaDB() })
	if sharedErr != nil {
		t.Fatal(sharedErr)
	}
	return shared.database(t)
}

func newMariaDB() (*mariaDB, error) {
	dir, err := os.MkdirTemp("", "sqlstock")
	if err != nil {
		return nil, err
	}
	install := exec.Command("mariadb-install-db", "--no-defaults", "--auth-root-authentication-method=normal",
		"--skip-test-db", "--datadir="+filepath.Join(dir, "data"))
	if out, err := install.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	m := &mariaDB{dir: dir, port: l.Addr().(*net.TCPAddr).Port}
	l.Close()
	return m, m.start()
}

func (m *mariaDB) start() error {
	m.cmd = exec.Command("mariadbd", "--no-defaults", "--user=root", "--bind-address=127.0.0.1",
		fmt.Sprint("--port=", m.port), "--datadir="+filepath.Join(m.dir, "data"), "--socket="+filepath.Join(m.dir, "sock"),
		"--pid-file="+filepath.Join(m.dir, "pid"), "--skip-log-bin")
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := m.cmd.Start(); err != nil {
		return err
	}
	db, err := sql.Open("mysql", m.dsn(""))
	if err != nil {
		return err
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for {
		if err := db.PingContext(ctx); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (m *mariaDB) kill() {
	m.cmd.Process.Kill()
	m.cmd.Wait()
}

func (m *mariaDB) remove() {
	m.kill()
	os.RemoveAll(m.dir)
}

func (m *mariaDB) dsn(database string) string {
	return fmt.Sprintf("root@tcp(127.0.0.1:%d)/%s", m.port, database)
}

func (m *mariaDB) database(t testing.TB) string {
	t.Helper()
	mysql.SetLogger(&mysql.NopLogger{})
	db, err := sql.Open("mysql", m.dsn(""))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	name := fmt.Sprintf("test%d", databases.Add(1))
	if _, err := db.Exec("CREATE DATABASE " + name); err != nil {
		t.Fatal(err)
	}
	return m.dsn(strings.ToLower(name))
}
