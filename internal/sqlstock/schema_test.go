package sqlstock_test

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"flashsale/internal/sqlstock"
	"flashsale/internal/stock"
	"flashsale/migrations"
)

// rawSQL is a connection past the ledger, for what no caller of it may do.
func rawSQL(t testing.TB, db *sqlstock.DB) *sql.DB { return sqlstock.Pool(db) }

func dialectOf(dsn string) migrations.Dialect {
	if sqlstock.IsStandIn(dsn) {
		return migrations.SQLite
	}
	return migrations.MySQL
}

func TestMigrationsGoUpAndDown(t *testing.T) {
	eachDatabase(t, func(t *testing.T, dsn func(testing.TB) string) {
		d := dsn(t)
		db, dialect := open(t, d, sqlstock.Options{}), dialectOf(d)
		raw := rawSQL(t, db)
		version := func(want int64) {
			t.Helper()
			if got, err := migrations.Current(t.Context(), raw, dialect); err != nil || got != want {
				t.Fatalf("version %d, %v, want %d", got, err, want)
			}
		}
		version(0)
		for range 2 {
			if err := migrations.Up(t.Context(), raw, dialect); err != nil {
				t.Fatal(err)
			}
			version(migrations.Version)
			for v := migrations.Version - 1; v >= 0; v-- {
				if err := migrations.DownTo(t.Context(), raw, dialect, v); err != nil {
					t.Fatal(err)
				}
				version(v)
			}
			for _, table := range []string{"sales", "purchases", "answers", "fences", "flashsale_locks", "preloads"} {
				if _, err := raw.ExecContext(t.Context(), "SELECT 1 FROM "+table); err == nil {
					t.Errorf("table %s is still there", table)
				}
			}
		}
	})
}

// What a program leaves behind on MySQL that died after a statement and before
// its record. SQLite does both or neither.
func TestMigrateGoesOnAfterACrash(t *testing.T) {
	for name, spoil := range map[string]string{
		"table of versions empty":  "DROP TABLE purchases, sales; DELETE FROM " + migrations.Table,
		"first table unrecorded":   "DROP TABLE purchases; DELETE FROM " + migrations.Table + " WHERE version_id > 0",
		"second table unrecorded":  "DELETE FROM " + migrations.Table + " WHERE version_id > 1",
		"removed, still on record": "DROP TABLE purchases",
	} {
		t.Run(name, func(t *testing.T) {
			db := migrated(t, mysqlDSN(t), sqlstock.Options{})
			for _, statement := range strings.Split(spoil, "; ") {
				if _, err := rawSQL(t, db).Exec(statement); err != nil {
					t.Fatal(err)
				}
			}
			if err := migrations.DownTo(t.Context(), rawSQL(t, db), migrations.MySQL, 1); err != nil {
				t.Fatal(err)
			}
			if err := db.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestMigratorsAtOnce(t *testing.T) {
	eachDatabase(t, func(t *testing.T, dsn func(testing.TB) string) {
		for range 3 {
			d := dsn(t)
			var wg sync.WaitGroup
			for range 6 {
				db := open(t, d, sqlstock.Options{})
				wg.Go(func() {
					if err := db.Migrate(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			var rows int
			err := rawSQL(t, open(t, d, sqlstock.Options{})).
				QueryRow("SELECT COUNT(*) FROM " + migrations.Table + " WHERE version_id > 0").Scan(&rows)
			if err != nil || rows != int(migrations.Version) {
				t.Errorf("%d migrations on record, %v, want %d", rows, err, migrations.Version)
			}
		}
	})
}

func TestMigrateRefusesAForeignTable(t *testing.T) {
	eachDatabase(t, func(t *testing.T, dsn func(testing.TB) string) {
		d, want := dsn(t), "not this program's"
		if sqlstock.IsStandIn(d) {
			want = "already exists"
		}
		db := open(t, d, sqlstock.Options{})
		if _, err := rawSQL(t, db).Exec("CREATE TABLE sales (id INT PRIMARY KEY, region VARCHAR(9))"); err != nil {
			t.Fatal(err)
		}
		if err := db.Migrate(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	})
}

func TestSchemaOfAnotherVersion(t *testing.T) {
	for name, c := range map[string]struct {
		spoil string
		have  int64
		text  string
	}{
		"none":  {"", 0, "no schema yet: run `flashsale migrate`"},
		"older": {"down", 1, fmt.Sprintf("version 1, this program needs %d: run `flashsale migrate`", migrations.Version)},
		"newer": {"INSERT INTO " + migrations.Table + " (version_id, is_applied) VALUES (99, 1)", 99, fmt.Sprintf("version 99, newer than this program's %d", migrations.Version)},
	} {
		t.Run(name, func(t *testing.T) {
			eachDatabase(t, func(t *testing.T, dsn func(testing.TB) string) {
				d := dsn(t)
				var err error
				switch c.spoil {
				case "":
				case "down":
					err = migrations.DownTo(t.Context(), rawSQL(t, migrated(t, d, sqlstock.Options{})), dialectOf(d), 1)
				default:
					_, err = rawSQL(t, migrated(t, d, sqlstock.Options{})).Exec(c.spoil)
				}
				if err != nil {
					t.Fatal(err)
				}
				db := open(t, d, sqlstock.Options{})

				err = db.CheckSchema(t.Context())
				var schema *sqlstock.SchemaError
				if !errors.As(err, &schema) || schema.Have != c.have || !strings.Contains(err.Error(), c.text) {
					t.Errorf("CheckSchema: %v", err)
				}
				if errors.Is(err, stock.ErrUnavailable) {
					t.Errorf("CheckSchema: %v, must not look like a database that is away", err)
				}

				// Nobody may have asked: the calls themselves refuse.
				_, errSale := db.Sale(t.Context(), "s")
				_, errSettle := db.Settle(t.Context(), []stock.Event{event("s", 1)})
				for call, err := range map[string]error{"Sale": errSale, "Settle": errSettle} {
					if !errors.Is(err, sqlstock.ErrSchema) || !errors.Is(err, stock.ErrUnavailable) || !strings.Contains(err.Error(), c.text) {
						t.Errorf("%s: %v", call, err)
					}
				}

				if name == "newer" {
					if err := db.Migrate(t.Context()); !errors.Is(err, sqlstock.ErrSchema) {
						t.Errorf("Migrate: %v", err)
					}
					return
				}
				// Somebody migrates: this process goes on without a restart.
				migrated(t, d, sqlstock.Options{})
				if _, err := db.Sale(t.Context(), "s"); !errors.Is(err, stock.ErrSaleNotFound) {
					t.Errorf("Sale after the migration: %v", err)
				}
			})
		})
	}
}
