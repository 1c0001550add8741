package main

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"gorm.io/gorm"
	"gorm.io/gorm/callbacks"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"
	"gorm.io/gorm/migrator"
	"gorm.io/gorm/schema"
)

// dialect generates the same statements as go-gorm-spanner, Google's dialect of GORM.
type dialect struct {
	database *sql.DB
	// keys selects how the database generates keys: "" by an identity column, which is the default; "AUTO_INCREMENT" by
	// a column with that clause; "DISABLED" by a sequence.
	keys string
}

func (d dialect) Name() string { return "spanner" }

func (d dialect) Initialize(db *gorm.DB) error {
	callbacks.RegisterDefaultCallbacks(db, &callbacks.Config{CreateClauses: []string{"INSERT", "VALUES", "RETURNING"}})
	db.ConnPool = d.database
	db.ClauseBuilders["INSERT"] = buildInsert
	db.ClauseBuilders["RETURNING"] = buildThenReturn
	// Key columns are removed from updates, because Spanner rejects an UPDATE that sets a key column.
	return db.Callback().Update().After("gorm:before_update").Before("gorm:update").Register("spanner:keys", func(db *gorm.DB) {
		db.Statement.Omit(db.Statement.Schema.PrimaryFieldDBNames...)
	})
}

// buildInsert writes GORM's OnConflict as INSERT OR UPDATE or INSERT OR IGNORE.
func buildInsert(c clause.Clause, builder clause.Builder) {
	insert, isInsert := c.Expression.(clause.Insert)
	statement, isStatement := builder.(*gorm.Statement)
	if isInsert && isStatement {
		if conflict, ok := statement.Clauses["ON CONFLICT"].Expression.(clause.OnConflict); ok {
			switch {
			case conflict.UpdateAll:
				insert.Modifier = "INSERT OR UPDATE"
			case conflict.DoNothing:
				insert.Modifier = "INSERT OR IGNORE"
			default:
				statement.AddError(errors.New("of conflict clauses Spanner has UpdateAll and DoNothing"))
				return
			}
			insert.Build(builder)
			return
		}
	}
	c.Build(builder)
}

func buildThenReturn(c clause.Clause, builder clause.Builder) {
	builder.WriteString("THEN RETURN ")
	returning, ok := c.Expression.(clause.Returning)
	if !ok || len(returning.Columns) == 0 {
		builder.WriteByte('*')
		return
	}
	for i, column := range returning.Columns {
		if i > 0 {
			builder.WriteByte(',')
		}
		builder.WriteQuoted(column)
	}
}

func (d dialect) DefaultValueOf(*schema.Field) clause.Expression { return clause.Expr{SQL: "NULL"} }

func (d dialect) BindVarTo(writer clause.Writer, _ *gorm.Statement, _ any) { writer.WriteByte('?') }

func (d dialect) QuoteTo(writer clause.Writer, name string) {
	parts := strings.Split(name, ".")
	for i, part := range parts {
		parts[i] = "`" + strings.Trim(part, "`") + "`"
	}
	writer.WriteString(strings.Join(parts, "."))
}

func (d dialect) Explain(text string, args ...any) string {
	return logger.ExplainSQL(text, nil, "'", args...)
}

func (d dialect) DataTypeOf(field *schema.Field) string {
	sized := func(name string, most int) string {
		if field.Size == 0 || field.Size > most {
			return name + "(MAX)"
		}
		return fmt.Sprintf("%s(%d)", name, field.Size)
	}
	switch field.DataType {
	case schema.Bool:
		return "BOOL"
	case schema.Int, schema.Uint:
		return "INT64"
	case schema.Float:
		if field.Size == 32 {
			return "FLOAT32"
		}
		return "FLOAT64"
	case schema.String:
		return sized("STRING", 2621440)
	case schema.Bytes:
		return sized("BYTES", 10485760)
	case schema.Time:
		return "TIMESTAMP"
	}
	return string(field.DataType)
}

func (d dialect) Migrator(db *gorm.DB) gorm.Migrator {
	return spannerMigrator{migrator.Migrator{Config: migrator.Config{DB: db, Dialector: d, CreateIndexAfterCreateTable: true}}, d}
}

// Translate replaces the error ALREADY_EXISTS by the error that GORM defines for it, since applications test for that.
// It returns other errors unchanged.
func (d dialect) Translate(err error) error {
	var of *driverError
	if errors.As(err, &of) && of.code == codes.AlreadyExists {
		return gorm.ErrDuplicatedKey
	}
	return err
}

// forceIndex is a table hint of a query. It names the index to use.
type forceIndex string

func (f forceIndex) ModifyStatement(statement *gorm.Statement) {
	from := statement.Clauses["FROM"]
	from.AfterExpression = f
	statement.Clauses["FROM"] = from
}

func (f forceIndex) Build(builder clause.Builder) {
	builder.WriteString("@{FORCE_INDEX=")
	builder.WriteQuoted(string(f))
	builder.WriteByte('}')
}
