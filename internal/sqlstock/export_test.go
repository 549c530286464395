package sqlstock

import (
	"database/sql"
	"fmt"
	"testing"

	"flashsale/internal/stock"
	"flashsale/migrations"
)

// Pool is the DB's connections, past the ledger.
func Pool(db *DB) *sql.DB { return db.sql }

// Losing is a counter whose answers are lost when lose says so.
func Losing(c stock.Counter, lose func() bool) stock.Counter {
	losing := *c.(*counter)
	losing.lose = lose
	return &losing
}

// Models are the rows whose columns the schema must have.
var Models = []any{&saleRow{}, &purchaseRow{}, &answerRow{}, &fenceRow{}, &preloadRow{}}

// Columns describes a table's columns as "null=bool key=bool" each.
func Columns(t testing.TB, db *DB, table string) map[string]string {
	types, err := db.gorm.Migrator().ColumnTypes(table)
	if err != nil {
		t.Fatal(err)
	}
	columns := map[string]string{}
	for _, column := range types {
		null, _ := column.Nullable()
		key, _ := column.PrimaryKey()
		columns[column.Name()] = fmt.Sprintf("null=%v key=%v", null, key)
	}
	return columns
}

// Indexes are the names and columns of the indexes on purchases.
func Indexes(db *DB) (map[string][]string, error) {
	query := `SELECT index_name, column_name FROM information_schema.statistics
		WHERE table_schema = DATABASE() AND table_name = 'purchases' ORDER BY index_name, seq_in_index`
	if db.dialect == migrations.SQLite {
		query = `SELECT l.name, i.name FROM pragma_index_list('purchases') AS l, pragma_index_info(l.name) AS i ORDER BY l.name, i.seqno`
	}
	rows, err := db.sql.Query(query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	indexes := map[string][]string{}
	for rows.Next() {
		var index, column string
		if err := rows.Scan(&index, &column); err != nil {
			return nil, err
		}
		indexes[index] = append(indexes[index], column)
	}
	return indexes, rows.Err()
}
