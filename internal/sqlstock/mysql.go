package sqlstock

import (
	"cmp"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	gormmysql "gorm.io/driver/mysql"
	"gorm.io/gorm"
)

const dsnForm = "user:password@tcp(host:3306)/database"

// mysqlConfig reads a DSN and sets what the ledger depends on. Its errors never
// quote the DSN: there is a password in it.
func mysqlConfig(dsn string, logger *slog.Logger) (*mysql.Config, error) {
	if scheme, _, ok := strings.Cut(dsn, "://"); ok && !strings.ContainsAny(scheme, "@/:(") {
		return nil, fmt.Errorf("it is a URL (%s://...), want %s", scheme, dsnForm)
	}
	c, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, fmt.Errorf("%w, want %s", err, dsnForm)
	}
	if c.DBName == "" {
		return nil, errors.New("it names no database, want " + dsnForm)
	}

	c.ParseTime = true
	c.Loc = time.UTC
	c.MultiStatements = false
	c.AllowAllFiles = false
	c.ClientFoundRows = false
	c.RejectReadOnly = true // after a failover, don't stay on the server that lost its role

	// Placeholders are filled in by the driver: one round trip a statement
	// instead of three. That is safe for character sets such as UTF-8, in which
	// no byte of a longer character can be a quote; so the set is fixed too.
	c.InterpolateParams = true
	if err := c.Apply(mysql.Charset("utf8mb4", "utf8mb4_general_ci")); err != nil {
		return nil, err
	}

	c.Timeout = cmp.Or(c.Timeout, 3*time.Second)
	c.ReadTimeout = cmp.Or(c.ReadTimeout, 15*time.Second)
	c.WriteTimeout = cmp.Or(c.WriteTimeout, 10*time.Second)

	if c.Params == nil {
		c.Params = map[string]string{}
	}
	// Without strict mode MySQL stores what it can of a wrong value.
	c.Params["sql_mode"] = "'STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'"
	if _, ok := c.Params["innodb_lock_wait_timeout"]; !ok {
		c.Params["innodb_lock_wait_timeout"] = "5" // seconds; below the read timeout
	}

	c.Logger = driverLog{logger}
	return c, nil
}

func openMySQL(dsn string, logger *slog.Logger) (*sql.DB, gorm.Dialector, error) {
	config, err := mysqlConfig(dsn, logger)
	if err != nil {
		return nil, nil, err
	}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, nil, err
	}
	pool := sql.OpenDB(connector)
	return pool, gormmysql.New(gormmysql.Config{
		Conn:                      pool,
		DSNConfig:                 config,
		SkipInitializeWithVersion: true, // it would ask the server
		DisableWithReturning:      true, // on MariaDB it makes counts wrong
	}), nil
}
