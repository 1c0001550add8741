package usererror

import (
	"strings"

	"google.golang.org/grpc/codes"
)

// DDLSyntax is a DDL statement that does not parse at an offset of its text.
func DDLSyntax(stmt string, pos int, reason string) *Error {
	line, column := LineAndColumn(stmt[:pos])
	e := newError(codes.InvalidArgument, "Error parsing Spanner DDL statement: %s : Syntax error on line %d, column %d: %s",
		shorten(stmt), line, column, reason)
	e.Syntax = reason
	return e.PointAt(stmt, pos)
}

// shorten cuts text that a message quotes, so that the message fits into a response.
func shorten(stmt string) string {
	const limit = 1024
	if len(stmt) <= limit {
		return stmt
	}
	return strings.ToValidUTF8(stmt[:limit], "") + "..."
}

// DDLEmpty is a statement without a word: empty, or only space and comments.
func DDLEmpty() *Error {
	return newError(codes.InvalidArgument, "DDL statement is empty.")
}

// DDLNotUTF8 is a statement that is not valid UTF-8.
func DDLNotUTF8() *Error {
	return newError(codes.InvalidArgument, "DDL statement is not valid UTF-8.")
}

// DDLTooLong is a statement, or a schema, of more bytes than fit.
func DDLTooLong(size, limit int) *Error {
	return newError(codes.InvalidArgument, "DDL statement of %d bytes exceeds the maximum of %d bytes.", size, limit)
}

// SchemaTooLarge is a statement that would make the whole schema too large.
func SchemaTooLarge(limit int) *Error {
	return newError(codes.FailedPrecondition, "The schema would exceed the maximum size of %d bytes.", limit)
}

// DDLTooDeep is a statement nested too deeply.
func DDLTooDeep(stmt string, limit int) *Error {
	return newError(codes.InvalidArgument, "Error parsing Spanner DDL statement: %s : nested deeper than the maximum of %d.",
		shorten(stmt), limit)
}

// DDLUnimplemented is a statement or clause that Spanner has and Crowfoot does not.
func DDLUnimplemented(what string) *Error {
	return newError(codes.Unimplemented, "%s is not implemented.", what)
}

// CreateDatabaseInUpdate is CREATE DATABASE where a database exists already.
func CreateDatabaseInUpdate() *Error {
	return newError(codes.InvalidArgument, "CREATE DATABASE is only allowed as the create_statement of CreateDatabase.")
}

// NotCreateDatabase is a create_statement that is something else.
func NotCreateDatabase(stmt string) *Error {
	return newError(codes.InvalidArgument, "Expected a CREATE DATABASE statement, found: %s", shorten(stmt))
}

// InvalidSchemaName is a name that breaks the rules; kind is "Table", "Column", ...
func InvalidSchemaName(kind, name string) *Error {
	return newError(codes.InvalidArgument, "%s name not valid: %s.", kind, name)
}

// ReservedConstraintName is a constraint name with a prefix that generated names use.
func ReservedConstraintName(kind, name, prefix string) *Error {
	return newError(codes.InvalidArgument, "Invalid %s name: %s. Prefix %s cannot be used.", kind, name, prefix)
}

// ReservedIndexName is an index called PRIMARY_KEY.
func ReservedIndexName() *Error {
	return newError(codes.InvalidArgument, "Cannot use reserved name PRIMARY_KEY for a secondary index.")
}

// DuplicateName is a name that something in the schema has already.
func DuplicateName(name string) *Error {
	return newError(codes.FailedPrecondition, "Duplicate name in schema: %s.", name)
}

// NamesDifferInCase is a name that differs only in case from one that is taken.
func NamesDifferInCase(name, taken string) *Error {
	return newError(codes.FailedPrecondition, "Schema object names differ only in case: %s, %s.", name, taken)
}

// DuplicateColumn is a column name used twice in a table; column is "t.c".
func DuplicateColumn(column string) *Error {
	return newError(codes.FailedPrecondition, "Duplicate column name %s.", column)
}

// SchemaObjectNotFound is a statement about an object that does not exist; kind is "Schema", "Index", ...
func SchemaObjectNotFound(kind, name string) *Error {
	return newError(codes.NotFound, "%s not found: %s", kind, name)
}

// DDLColumnNotFound is a statement about a column that does not exist.
func DDLColumnNotFound(table, column string) *Error {
	return newError(codes.NotFound, "Column not found in table %s: %s", table, column)
}

// ConstraintNotFound is DROP CONSTRAINT of a constraint that does not exist.
func ConstraintNotFound(constraint, table string) *Error {
	return newError(codes.NotFound, "%s is not a constraint in %s", constraint, table)
}

// TypeNotFound is a column of a type that does not exist.
func TypeNotFound(name string) *Error {
	return newError(codes.NotFound, "Type not found: %s%s", name, TypeHint(name))
}

// BadColumnType is a column of a type that exists, but not for columns.
func BadColumnType(column, typ string) *Error {
	return newError(codes.InvalidArgument, "Column %s has an unrecognized column type %s.", column, typ)
}

// BadColumnLength is STRING(n) or BYTES(n) with an n out of range.
func BadColumnLength(column, length string, limit int64) *Error {
	return newError(codes.InvalidArgument, "Bad length for column %s: %s : Allowed length range: [1, %d].", column, length, limit)
}

// BadTypeArgument is an argument of an ARRAY type, name=>value, that does not exist or is given twice.
func BadTypeArgument(column, name string) *Error {
	return newError(codes.InvalidArgument, "Column %s has an invalid argument %s of its type. The only argument is vector_length, once.", column, name)
}

// VectorLengthType is vector_length on a type that has none.
func VectorLengthType(column string) *Error {
	return newError(codes.InvalidArgument,
		"`vector_length` can only be applied on ARRAY<FLOAT32> or ARRAY<FLOAT64>, but it is applied on %s.", column)
}

// VectorLengthOfComputed is vector_length on a generated column, or on one with a default.
func VectorLengthOfComputed(column string) *Error {
	return newError(codes.InvalidArgument,
		"`vector_length` cannot be applied on generated column or default column, but it is applied on %s.", column)
}

// TooManyColumns is a table with too many columns.
func TooManyColumns(table string, limit int) *Error {
	return newError(codes.FailedPrecondition, "Table %s has too many columns; the limit is %d.", table, limit)
}

// TooManyTables is one table too many in the database.
func TooManyTables(table string, limit int) *Error {
	return newError(codes.FailedPrecondition, "Cannot add Table %s : too many tables (limit %d per database).", table, limit)
}

// TooManyIndexes is one index too many in the database.
func TooManyIndexes(index string, limit int) *Error {
	return newError(codes.FailedPrecondition, "Cannot add Index %s : too many indexes (limit %d per database).", index, limit)
}

// TooManyTableIndexes is one index too many on a table.
func TooManyTableIndexes(index, table string, limit int) *Error {
	return newError(codes.FailedPrecondition, "Cannot add index %s to table %s: too many indices (limit %d per table).",
		index, table, limit)
}

// TooDeepInterleaving is a table too far below its root.
func TooDeepInterleaving(table string, limit int) *Error {
	return newError(codes.FailedPrecondition, "Table %s is too deeply nested; the limit is %d.", table, limit)
}

// Commit timestamps, primary keys.

// CommitTimestampOption is allow_commit_timestamp on a column that is no TIMESTAMP.
func CommitTimestampOption(column string) *Error {
	return newError(codes.FailedPrecondition,
		"Column %s has invalid allow_commit_timestamp option. Option only allowed on TIMESTAMP columns.", column)
}

// BadColumnOption is a column option that does not exist or has a value of the wrong kind.
func BadColumnOption(column, option, reason string) *Error {
	return newError(codes.InvalidArgument, "Invalid option %s on column %s: %s.", option, column, reason)
}

// BadObjectOption is an option of a table or an index that does not exist or has a bad value; kind says which of the two it is.
func BadObjectOption(option, kind, name, reason string) *Error {
	return newError(codes.InvalidArgument, "Invalid option %s on %s %s: %s.", option, strings.ToLower(kind), name, reason)
}

// BadDatabaseOptionValue is an ALTER DATABASE option with a value that it may have in no database. The whole request is refused.
func BadDatabaseOptionValue(option, reason string) *Error {
	return newError(codes.InvalidArgument, "Invalid Alter Database Option: %s. %s.", option, reason)
}

// BadDatabaseOption is an ALTER DATABASE option that does not exist, or that the database cannot change now.
func BadDatabaseOption(option, reason string) *Error {
	return newError(codes.FailedPrecondition, "Invalid Alter Database Option: %s. %s.", option, reason)
}

// NoPrimaryKey is CREATE TABLE without PRIMARY KEY.
func NoPrimaryKey(table string) *Error {
	return newError(codes.InvalidArgument, "Table %s has no primary key: PRIMARY KEY is missing, inline or after the columns.", table)
}

// SeveralPrimaryKeys is CREATE TABLE with more than one PRIMARY KEY.
func SeveralPrimaryKeys(table string) *Error {
	return newError(codes.InvalidArgument, "Table %s has more than one PRIMARY KEY definition.", table)
}

// KeyColumnNotFound is a key that names no column; kind is "Table" or "Index".
func KeyColumnNotFound(kind, name, column string) *Error {
	return newError(codes.FailedPrecondition, "%s %s references nonexistent key column %s.", kind, name, column)
}

// KeyColumnTwice is a key that names a column twice.
func KeyColumnTwice(kind, name, column string) *Error {
	return newError(codes.InvalidArgument, "%s %s references key column %s more than once.", kind, name, column)
}

// KeyColumnType is a key column of a type without order; column is "t.c".
func KeyColumnType(column, typ string) *Error {
	return newError(codes.InvalidArgument, "Column %s has type %s, but is part of the primary key.", column, typ)
}

// TooManyKeyParts is a key with too many parts.
func TooManyKeyParts(kind, name string, parts, limit int) *Error {
	return newError(codes.InvalidArgument, "%s %s has too many keys (%d); the limit is %d.", kind, name, parts, limit)
}

// TooManyObjects is an object of a kind of which the database has as many as it may.
func TooManyObjects(kind, name string, limit int) *Error {
	return newError(codes.FailedPrecondition, "Cannot add %s %s : too many of them (limit %d).", kind, name, limit)
}

// PlacementKeyColumn is PLACEMENT KEY on a column that cannot have it.
func PlacementKeyColumn(column string) *Error {
	return newError(codes.InvalidArgument, "Placement key column %s must be of type STRING and NOT NULL, without DEFAULT and not generated.", column)
}

// SeveralPlacementKeys is a table with more than one placement key.
func SeveralPlacementKeys(table string) *Error {
	return newError(codes.InvalidArgument, "Table %s has more than one placement key.", table)
}

// AddPlacementKey is ADD COLUMN ... PLACEMENT KEY.
func AddPlacementKey(table, column string) *Error {
	return newError(codes.InvalidArgument, "Cannot add placement key column %s.%s to existing table %s.", table, column, table)
}

// DropPlacementKey is DROP COLUMN of a placement key.
func DropPlacementKey(table, column string) *Error {
	return newError(codes.FailedPrecondition, "Cannot drop placement key column %s from table %s.", column, table)
}

// DropLocalityGroupInUse is a DROP of a locality group that tables, columns or indexes name.
func DropLocalityGroupInUse(name string) *Error {
	return newError(codes.FailedPrecondition, "Locality group %s cannot be dropped as it is referenced.", name)
}

// CreateDefaultLocalityGroup is a CREATE of the locality group that every database has.
func CreateDefaultLocalityGroup() *Error {
	return newError(codes.FailedPrecondition, "Default locality group cannot be created.")
}

// DropDefaultLocalityGroup is a DROP of the locality group that every database has.
func DropDefaultLocalityGroup() *Error {
	return newError(codes.FailedPrecondition, "Default locality group cannot be dropped.")
}

// spannerTypes are Spanner's types for those that other databases have.
var spannerTypes = map[string]string{
	"VARCHAR": "STRING(n)", "NVARCHAR": "STRING(n)", "CHAR": "STRING(n)", "NCHAR": "STRING(n)", "CHARACTER": "STRING(n)", "TEXT": "STRING(MAX)", "CLOB": "STRING(MAX)",
	"INT": "INT64", "INTEGER": "INT64", "BIGINT": "INT64", "SMALLINT": "INT64", "TINYINT": "INT64", "INT32": "INT64", "INT8": "INT64",
	"SERIAL": "INT64 GENERATED BY DEFAULT AS IDENTITY (BIT_REVERSED_POSITIVE)", "BIGSERIAL": "INT64 GENERATED BY DEFAULT AS IDENTITY (BIT_REVERSED_POSITIVE)",
	"FLOAT": "FLOAT64", "DOUBLE": "FLOAT64", "REAL": "FLOAT32", "DECIMAL": "NUMERIC", "NUMBER": "NUMERIC", "BOOLEAN": "BOOL",
	"DATETIME": "TIMESTAMP", "TIMESTAMPTZ": "TIMESTAMP", "BLOB": "BYTES(MAX)", "BYTEA": "BYTES(MAX)", "BINARY": "BYTES(n)", "VARBINARY": "BYTES(n)", "JSONB": "JSON",
}

// TypeHint is what is said behind the name of a type of other databases: that of Spanner.
func TypeHint(name string) string {
	if t := spannerTypes[strings.ToUpper(strings.Trim(name, "`"))]; t != "" {
		return "; Spanner's type is " + t
	}
	return ""
}
