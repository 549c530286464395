package sqlstock

import (
	"context"
	"errors"
	"fmt"

	"gorm.io/gorm"

	"flashsale/internal/stock"
	"flashsale/migrations"
)

// ErrSchema says that the database answers but has another schema than this
// program's. It is a *SchemaError.
var ErrSchema = errors.New("sqlstock: schema does not fit")

// SchemaError is ErrSchema with the versions.
type SchemaError struct {
	Have int64 // 0: there is none
	Want int64
}

func (e *SchemaError) Error() string {
	switch {
	case e.Have == 0:
		return "sqlstock: the database has no schema yet: run `flashsale migrate`"
	case e.Have < e.Want:
		return fmt.Sprintf("sqlstock: the database's schema is version %d, this program needs %d: run `flashsale migrate`", e.Have, e.Want)
	default:
		return fmt.Sprintf("sqlstock: the database's schema is version %d, newer than this program's %d: run a newer program (`flashsale migrate` never goes back)", e.Have, e.Want)
	}
}

func (e *SchemaError) Unwrap() error { return ErrSchema }

// CheckSchema compares the database's schema with the program's: nil, a
// *SchemaError, or stock.ErrUnavailable when the database doesn't answer, in
// which case each ledger call looks again until it has seen the right one.
func (db *DB) CheckSchema(ctx context.Context) error {
	have, err := migrations.Current(ctx, db.sql, db.dialect)
	if err != nil {
		return wrap(ctx, "read the schema's version", err)
	}
	if have != migrations.Version {
		db.schemaOK.Store(false)
		return &SchemaError{Have: have, Want: migrations.Version}
	}
	db.schemaOK.Store(true)
	return nil
}

// ready is CheckSchema until it has been right once. For the caller of a ledger
// call a wrong schema is a ledger that can't be used for now.
func (db *DB) ready(ctx context.Context) error {
	if db.schemaOK.Load() {
		return nil
	}
	err := db.CheckSchema(ctx)
	if errors.Is(err, ErrSchema) {
		return fmt.Errorf("%w: %w", stock.ErrUnavailable, err)
	}
	return err
}

// Migrate makes or upgrades the schema; doing so again, or at the same time
// elsewhere, changes nothing. A database that is newer is left alone.
func (db *DB) Migrate(ctx context.Context) error {
	var schema *SchemaError
	err := db.CheckSchema(ctx)
	if err == nil {
		return nil
	}
	if !errors.As(err, &schema) || schema.Have > schema.Want {
		return err
	}
	if err := migrations.Up(ctx, db.sql, db.dialect); err != nil {
		return wrap(ctx, "migrate", err)
	}
	if err := db.checkColumns(ctx); err != nil {
		return err
	}
	return db.CheckSchema(ctx)
}

// checkColumns finds tables of the same name that are somebody else's, which a
// migration steps over.
func (db *DB) checkColumns(ctx context.Context) error {
	g := db.gorm.Session(&gorm.Session{Context: ctx, QueryFields: true})
	for _, err := range []error{
		g.Where("1 = 0").Find(&[]saleRow{}).Error,
		g.Where("1 = 0").Find(&[]purchaseRow{}).Error,
		g.Where("1 = 0").Find(&[]answerRow{}).Error,
		g.Where("1 = 0").Find(&[]fenceRow{}).Error,
		g.Where("1 = 0").Find(&[]preloadRow{}).Error,
		g.Exec("SELECT name, fence FROM flashsale_locks WHERE 1 = 0").Error,
	} {
		if err != nil {
			return wrap(ctx, "the tables are not this program's", err)
		}
	}
	return nil
}
