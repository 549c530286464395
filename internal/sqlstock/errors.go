package sqlstock

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"

	"github.com/glebarez/go-sqlite"
	"github.com/go-sql-driver/mysql"

	"flashsale/internal/stock"
)

// The server's error numbers that mean something here.
const (
	mysqlDuplicate = 1062
	mysqlNoTable   = 1146

	sqliteBusy       = 5    // primary code
	sqliteLocked     = 6    // primary code
	sqliteCantOpen   = 14   // primary code
	sqlitePrimaryKey = 1555 // extended code
	sqliteUnique     = 2067 // extended code
)

// conflicts are what a transaction fails with because of another one: it has
// been rolled back and the same again may well succeed.
var conflicts = map[uint16]bool{
	1020: true, // record has changed since last read (MariaDB's snapshot isolation)
	1205: true, // lock wait timeout
	1213: true, // deadlock
	3572: true, // NOWAIT
}

// absences are what a server says that can't serve at all, or not us.
var absences = map[uint16]bool{
	1040: true, // too many connections
	1044: true, // access to the database denied
	1045: true, // access denied
	1049: true, // unknown database
	1053: true, // server shutdown in progress
	1129: true, // host blocked
	1203: true, // too many connections of this user
	1226: true, // resource limit of this user
	1290: true, // server runs read-only
	1836: true, // server runs read-only
	1792: true, // transaction is read-only
	1927: true, // connection was killed
	1969: true, // statement time exceeded (MariaDB)
	3024: true, // statement time exceeded
	4031: true, // disconnected for inactivity
}

// wrap gives an error of the database its meaning: stock.ErrUnavailable for one
// that could not be reached or could not get its work done, the context's own
// when the caller has given up, and the domain's untouched.
func wrap(ctx context.Context, what string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(ctx.Err(), context.Canceled):
		return fmt.Errorf("sqlstock: %s: %w", what, ctx.Err())
	case unavailable(err) || conflict(err):
		return fmt.Errorf("sqlstock: %s: %w: %w", what, stock.ErrUnavailable, err)
	default:
		return fmt.Errorf("sqlstock: %s: %w", what, err)
	}
}

func unavailable(err error) bool {
	var network net.Error
	var server *mysql.MySQLError
	var file *sqlite.Error
	switch {
	case errors.As(err, &server):
		return absences[server.Number]
	case errors.As(err, &file):
		return file.Code()&0xff == sqliteCantOpen
	case errors.As(err, &network): // context.DeadlineExceeded is one too
		return true
	}
	for _, cause := range []error{
		driver.ErrBadConn, mysql.ErrInvalidConn, mysql.ErrPktSync, mysql.ErrMalformPkt, io.EOF, io.ErrUnexpectedEOF,
		syscall.EPIPE, syscall.ECONNRESET, syscall.ECONNREFUSED,
	} {
		if errors.Is(err, cause) {
			return true
		}
	}
	return false
}

func conflict(err error) bool {
	var server *mysql.MySQLError
	var file *sqlite.Error
	switch {
	case errors.Is(err, errOvertaken): // whatever the server has called it
		return true
	case errors.As(err, &server):
		return conflicts[server.Number]
	case errors.As(err, &file):
		return file.Code()&0xff == sqliteBusy || file.Code()&0xff == sqliteLocked
	}
	return false
}

func duplicate(err error) bool {
	var server *mysql.MySQLError
	var file *sqlite.Error
	switch {
	case errors.As(err, &server):
		return server.Number == mysqlDuplicate
	case errors.As(err, &file):
		return file.Code() == sqlitePrimaryKey || file.Code() == sqliteUnique
	}
	return false
}

// errOvertaken says that something this transaction had read was changed
// before it wrote.
var errOvertaken = errors.New("overtaken by another transaction")
