package servers

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

const databaseName = "flashsale"

// MariaDBAvailable says whether MariaDB can start here: nil, or what is missing.
func MariaDBAvailable() error {
	for _, name := range []string{"mariadbd", "mariadb-install-db"} {
		if _, err := find(name); err != nil {
			return err
		}
	}
	return nil
}

// mariaDB is a process with a database in it.
type mariaDB struct{ *process }

func (m mariaDB) DSN() string { return rootDSN(m.Addr(), databaseName) }

// MariaDB is a mariadbd of its own whose files live in dir; it stands for MySQL.
// A commit is flushed before it is answered, as in production; what is switched
// off (binary log, performance schema) is what the system does not use.
func MariaDB(dir string) Database {
	dir = absolute(dir)
	data := filepath.Join(dir, "data")
	p := &process{name: SQLName, dir: dir, wants: 1}
	p.setup = func(ctx context.Context) error {
		installer, err := find("mariadb-install-db")
		if err != nil {
			return err
		}
		args := append([]string{"--no-defaults"}, asUser()...)
		return p.run(ctx, exec.Command(installer, append(args,
			"--datadir="+data, "--auth-root-authentication-method=normal",
			"--skip-test-db", "--skip-name-resolve", "--innodb-log-file-size=16M")...))
	}
	p.command = func() (*exec.Cmd, error) {
		binary, err := find("mariadbd")
		if err != nil {
			return nil, err
		}
		args := append([]string{"--no-defaults"}, asUser()...)
		return exec.Command(binary, append(args,
			"--datadir="+data, "--bind-address=127.0.0.1", "--port="+strconv.Itoa(p.ports[0]),
			"--socket=mariadb.sock", // relative to the data: a long path fits into no socket address
			"--pid-file="+filepath.Join(dir, "pid"),
			"--skip-name-resolve", "--skip-log-bin", "--performance-schema=OFF",
			"--innodb-buffer-pool-size=128M", "--innodb-log-file-size=16M",
			"--innodb-flush-log-at-trx-commit=1", "--max-connections=1000",
			"--character-set-server=utf8mb4")...), nil
	}
	p.probe = func(ctx context.Context, _ int) (string, error) {
		return probeMariaDB(ctx, loopback(p.ports[0]), data)
	}
	return mariaDB{p}
}

// asUser allows root to run the server. Switching to another user instead would
// also switch off the signal that ends the child with its parent.
func asUser() []string {
	if os.Geteuid() == 0 {
		return []string{"--user=root"}
	}
	return nil
}

// probeMariaDB makes the database when the server with these data answers.
func probeMariaDB(ctx context.Context, addr, data string) (string, error) {
	db, err := openMySQL(rootDSN(addr, ""))
	if err != nil {
		return "", err
	}
	defer db.Close()
	var version, home string
	if err := db.QueryRowContext(ctx, "SELECT VERSION(), @@datadir").Scan(&version, &home); err != nil {
		return "", err
	}
	if filepath.Clean(home) != resolved(data) && filepath.Clean(home) != data {
		return "", fmt.Errorf("%s is answered by the server of %s", addr, home)
	}
	if _, err := db.ExecContext(ctx, "CREATE DATABASE IF NOT EXISTS "+databaseName); err != nil {
		return "", err
	}
	return sqlVersion(version), nil
}

// sqlVersion turns "10.11.6-MariaDB-0+deb12u1" into "MariaDB 10.11.6".
func sqlVersion(version string) string {
	number, rest, _ := strings.Cut(version, "-")
	if strings.Contains(rest, "MariaDB") {
		return "MariaDB " + number
	}
	return "MySQL " + number
}

func rootDSN(addr, database string) string {
	return "root@tcp(" + addr + ")/" + database + "?parseTime=true"
}

// openMySQL opens a pool of its own for a few statements. The driver would log
// each refused connection of a server that is still coming up.
func openMySQL(dsn string) (*sql.DB, error) {
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, err
	}
	config.Logger = &mysql.NopLogger{}
	config.Timeout = 2 * time.Second
	config.ReadTimeout = 10 * time.Second
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}
