package sqlstock

import (
	"database/sql"
	"errors"
	"log/slog"
	"strings"

	"github.com/glebarez/sqlite"
	"gorm.io/gorm"
)

const sqlitePrefix = "sqlite:"

// A transaction takes the write lock when it begins (_txlock): one that reads
// first and writes later can't get it any more once another has written.
// Don't add _time_format: this driver then ignores _txlock, and its default is
// the one that we want.
const sqliteParams = "?_pragma=journal_mode(wal)&_pragma=busy_timeout(10000)&_pragma=synchronous(normal)&_txlock=immediate"

// uriEscape keeps a path that has one of a URI's characters in it whole.
var uriEscape = strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23")

func openSQLite(dsn string, _ *slog.Logger) (*sql.DB, gorm.Dialector, error) {
	path := strings.TrimPrefix(dsn, sqlitePrefix)
	if path == "" || strings.HasPrefix(path, ":") {
		return nil, nil, errors.New("it names no file, want sqlite:path/to/file")
	}
	pool, err := sql.Open(sqlite.DriverName, "file:"+uriEscape.Replace(path)+sqliteParams)
	if err != nil {
		return nil, nil, err
	}
	return pool, sqlite.Dialector{Conn: pool}, nil
}
