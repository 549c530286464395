package sqlstock_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"testing"

	"gorm.io/gorm/schema"

	"flashsale/internal/sqlstock"
)

// The schema is written by hand; the models must say the same of it: which
// columns there are, which of them may be NULL, and what identifies a row.
func TestModelsMatchTheSchema(t *testing.T) {
	eachDatabase(t, func(t *testing.T, dsn func(testing.TB) string) {
		db := migrated(t, dsn(t), sqlstock.Options{})
		for _, model := range sqlstock.Models {
			parsed, err := schema.Parse(model, &sync.Map{}, schema.NamingStrategy{})
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]string{}
			for _, field := range parsed.Fields {
				want[field.DBName] = fmt.Sprintf("null=%v key=%v", field.FieldType.Kind() == reflect.Pointer, field.PrimaryKey)
			}
			got := sqlstock.Columns(t, db, parsed.Table)
			if !maps.Equal(got, want) {
				t.Errorf("%s: the schema has\n%v, the model\n%v", parsed.Table, got, want)
			}
		}
	})
}

// What the design fixes beyond the columns.
func TestUniqueKeyAndIndex(t *testing.T) {
	eachDatabase(t, func(t *testing.T, dsn func(testing.TB) string) {
		db := migrated(t, dsn(t), sqlstock.Options{})
		indexes, err := sqlstock.Indexes(db)
		if err != nil {
			t.Fatal(err)
		}
		for name, columns := range map[string][]string{
			"purchases_live": {"sale_id", "user_id", "live"}, "purchases_status": {"sale_id", "status"},
		} {
			if !slices.Equal(indexes[name], columns) {
				t.Errorf("index %s on %v, want %v", name, indexes[name], columns)
			}
		}
		raw := rawSQL(t, db)
		row := func(id, live string) error {
			_, err := raw.Exec(`INSERT INTO purchases VALUES ('` + id + `', 's', 'u', 1, 1, 1, 'x', '', ` + live + `, '2026-01-01', '2026-01-01')`)
			return err
		}
		for id, live := range map[string]string{"a": "NULL", "b": "NULL", "c": "1"} {
			if err := row(id, live); err != nil {
				t.Errorf("row %s, live %s: %v", id, live, err)
			}
		}
		if err := row("d", "1"); err == nil {
			t.Error("two live purchases of one user are possible")
		}
		if _, err := raw.Exec(`INSERT INTO sales VALUES ('s', 'i', 't', 1, 1, -1, 1, 'none', 1, 0, 0, NULL, NULL, NULL)`); err == nil {
			t.Error("remaining may be negative")
		}
	})
}
