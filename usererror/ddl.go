package usererror

import (
	"strings"

	"google.golang.org/grpc/codes"
)

// DDLSyntax returns the error for a DDL statement that does not parse. pos is the offset in stmt where parsing failed,
// and reason says why.
func DDLSyntax(stmt string, pos int, reason string) *Error {
	line, column := LineAndColumn(stmt[:pos])
	e := newError(codes.InvalidArgument, "Error parsing Spanner DDL statement: %s : Syntax error on line %d, column %d: %s",
		shorten(stmt), line, column, reason)
	e.Syntax = reason
	return e.PointAt(stmt, pos)
}

// shorten prepares a text that a message will quote. It keeps only the first 1024 bytes of a longer text, so that the
// message fits into a response.
func shorten(stmt string) string {
	const limit = 1024
	if len(stmt) <= limit {
		return stmt
	}
	return strings.ToValidUTF8(stmt[:limit], "") + "..."
}

// DDLEmpty returns the error for a DDL statement without a word: it is empty or has only space and comments.
func DDLEmpty() *Error {
	return newError(codes.InvalidArgument, "DDL statement is empty.")
}

// DDLNotUTF8 returns the error for a statement that is not valid UTF-8.
func DDLNotUTF8() *Error {
	return newError(codes.InvalidArgument, "DDL statement is not valid UTF-8.")
}

// DDLTooLong returns the error for a DDL statement of size bytes, which is more than the allowed limit.
func DDLTooLong(size, limit int) *Error {
	return newError(codes.InvalidArgument, "DDL statement of %d bytes exceeds the maximum of %d bytes.", size, limit)
}

// SchemaTooLarge returns the error for a statement after which the whole schema would have more than limit bytes.
func SchemaTooLarge(limit int) *Error {
	return newError(codes.FailedPrecondition, "The schema would exceed the maximum size of %d bytes.", limit)
}

// DDLTooDeep returns the error for a DDL statement that is nested more than limit levels deep.
func DDLTooDeep(stmt string, limit int) *Error {
	return newError(codes.InvalidArgument, "Error parsing Spanner DDL statement: %s : nested deeper than the maximum of %d.",
		shorten(stmt), limit)
}

// DDLUnimplemented returns the error for a DDL statement or clause that Spanner has but Crowfoot does not have.
func DDLUnimplemented(what string) *Error {
	return newError(codes.Unimplemented, "%s is not implemented.", what)
}

// CreateDatabaseInUpdate returns the error for CREATE DATABASE in a schema change, where the database already exists.
func CreateDatabaseInUpdate() *Error {
	return newError(codes.InvalidArgument, "CREATE DATABASE is only allowed as the create_statement of CreateDatabase.")
}

// NotCreateDatabase returns the error for a create_statement that is not a CREATE DATABASE statement.
func NotCreateDatabase(stmt string) *Error {
	return newError(codes.InvalidArgument, "Expected a CREATE DATABASE statement, found: %s", shorten(stmt))
}

// InvalidSchemaName returns the error for a malformed name. kind is the kind of object: "Table", "Column", ...
func InvalidSchemaName(kind, name string) *Error {
	return newError(codes.InvalidArgument, "%s name not valid: %s.", kind, name)
}

// ReservedConstraintName returns the error for a constraint name with a prefix that generated names use.
func ReservedConstraintName(kind, name, prefix string) *Error {
	return newError(codes.InvalidArgument, "Invalid %s name: %s. Prefix %s cannot be used.", kind, name, prefix)
}

// ReservedIndexName returns the error for an index called PRIMARY_KEY.
func ReservedIndexName() *Error {
	return newError(codes.InvalidArgument, "Cannot use reserved name PRIMARY_KEY for a secondary index.")
}

// DuplicateName returns the error for giving an object the name of another object in the schema.
func DuplicateName(name string) *Error {
	return newError(codes.FailedPrecondition, "Duplicate name in schema: %s.", name)
}

// NamesDifferInCase returns the error for a new name that differs only in case from the name of an existing object.
func NamesDifferInCase(name, existing string) *Error {
	return newError(codes.FailedPrecondition, "Schema object names differ only in case: %s, %s.", name, existing)
}

// DuplicateColumn returns the error for a column name that is used twice in a table. column has the form "t.c".
func DuplicateColumn(column string) *Error {
	return newError(codes.FailedPrecondition, "Duplicate column name %s.", column)
}

// SchemaObjectNotFound returns the error for a DDL statement about an object that does not exist. kind is "Schema",
// "Index", ...
func SchemaObjectNotFound(kind, name string) *Error {
	return newError(codes.NotFound, "%s not found: %s", kind, name)
}

// DDLColumnNotFound returns the error for a DDL statement about a column that does not exist.
func DDLColumnNotFound(table, column string) *Error {
	return newError(codes.NotFound, "Column not found in table %s: %s", table, column)
}

// ConstraintNotFound returns the error for DROP CONSTRAINT of a constraint that does not exist.
func ConstraintNotFound(constraint, table string) *Error {
	return newError(codes.NotFound, "%s is not a constraint in %s", constraint, table)
}

// TypeNotFound returns the error for a column of a type that does not exist.
func TypeNotFound(name string) *Error {
	return newError(codes.NotFound, "Type not found: %s%s", name, TypeHint(name))
}

// BadColumnType returns the error for a column of a type that columns cannot have.
func BadColumnType(column, typ string) *Error {
	return newError(codes.InvalidArgument, "Column %s has an unrecognized column type %s.", column, typ)
}

// BadColumnLength returns the error for STRING(n) or BYTES(n) with n out of range.
func BadColumnLength(column, length string, limit int64) *Error {
	return newError(codes.InvalidArgument, "Bad length for column %s: %s : Allowed length range: [1, %d].", column, length, limit)
}

// BadTypeArgument returns the error for an argument of an ARRAY type, name=>value, that does not exist or is given
// twice.
func BadTypeArgument(column, name string) *Error {
	return newError(codes.InvalidArgument, "Column %s has an invalid argument %s of its type. The only argument is vector_length, once.", column, name)
}

// VectorLengthType returns the error for vector_length on a column whose type does not allow it.
func VectorLengthType(column string) *Error {
	return newError(codes.InvalidArgument,
		"`vector_length` can only be applied on ARRAY<FLOAT32> or ARRAY<FLOAT64>, but it is applied on %s.", column)
}

// VectorLengthOfComputed returns the error for vector_length on a generated column, or on one with a default.
func VectorLengthOfComputed(column string) *Error {
	return newError(codes.InvalidArgument,
		"`vector_length` cannot be applied on generated column or default column, but it is applied on %s.", column)
}

// TooManyColumns returns the error for a table with too many columns.
func TooManyColumns(table string, limit int) *Error {
	return newError(codes.FailedPrecondition, "Table %s has too many columns; the limit is %d.", table, limit)
}

// TooManyTables returns the error for a new table in a database that already has limit tables.
func TooManyTables(table string, limit int) *Error {
	return newError(codes.FailedPrecondition, "Cannot add Table %s : too many tables (limit %d per database).", table, limit)
}

// TooManyIndexes returns the error for a new index in a database that already has limit indexes.
func TooManyIndexes(index string, limit int) *Error {
	return newError(codes.FailedPrecondition, "Cannot add Index %s : too many indexes (limit %d per database).", index, limit)
}

// TooManyTableIndexes returns the error for a new index on a table that already has limit indexes.
func TooManyTableIndexes(index, table string, limit int) *Error {
	return newError(codes.FailedPrecondition, "Cannot add index %s to table %s: too many indices (limit %d per table).",
		index, table, limit)
}

// TooDeepInterleaving returns the error for a table that would be more than limit levels below its root table.
func TooDeepInterleaving(table string, limit int) *Error {
	return newError(codes.FailedPrecondition, "Table %s is too deeply nested; the limit is %d.", table, limit)
}

// Errors about commit timestamps, options and primary keys.

// CommitTimestampOption returns the error for allow_commit_timestamp on a column that is not a TIMESTAMP.
func CommitTimestampOption(column string) *Error {
	return newError(codes.FailedPrecondition,
		"Column %s has invalid allow_commit_timestamp option. Option only allowed on TIMESTAMP columns.", column)
}

// BadColumnOption returns the error for a column option that does not exist or has a value of the wrong kind.
func BadColumnOption(column, option, reason string) *Error {
	return newError(codes.InvalidArgument, "Invalid option %s on column %s: %s.", option, column, reason)
}

// BadObjectOption returns the error for an option of a table or an index that does not exist or has a bad value. kind
// is the kind of object: "Table" or "Index".
func BadObjectOption(option, kind, name, reason string) *Error {
	return newError(codes.InvalidArgument, "Invalid option %s on %s %s: %s.", option, strings.ToLower(kind), name, reason)
}

// BadDatabaseOptionValue returns the error for an ALTER DATABASE option with a value that no database may have. The
// request fails without running any of its statements.
func BadDatabaseOptionValue(option, reason string) *Error {
	return newError(codes.InvalidArgument, "Invalid Alter Database Option: %s. %s.", option, reason)
}

// BadDatabaseOption returns the error for an ALTER DATABASE option that does not exist, or that the database cannot
// change now.
func BadDatabaseOption(option, reason string) *Error {
	return newError(codes.FailedPrecondition, "Invalid Alter Database Option: %s. %s.", option, reason)
}

// NoPrimaryKey returns the error for CREATE TABLE without PRIMARY KEY.
func NoPrimaryKey(table string) *Error {
	return newError(codes.InvalidArgument, "Table %s has no primary key: PRIMARY KEY is missing, inline or after the columns.", table)
}

// SeveralPrimaryKeys returns the error for CREATE TABLE with more than one PRIMARY KEY.
func SeveralPrimaryKeys(table string) *Error {
	return newError(codes.InvalidArgument, "Table %s has more than one PRIMARY KEY definition.", table)
}

// KeyColumnNotFound returns the error for a key that names a column which does not exist. kind is "Table" or "Index".
func KeyColumnNotFound(kind, name, column string) *Error {
	return newError(codes.FailedPrecondition, "%s %s references nonexistent key column %s.", kind, name, column)
}

// KeyColumnTwice returns the error for a key that names a column twice.
func KeyColumnTwice(kind, name, column string) *Error {
	return newError(codes.InvalidArgument, "%s %s references key column %s more than once.", kind, name, column)
}

// KeyColumnType returns the error for a key column of a type whose values have no order. column has the form "t.c".
func KeyColumnType(column, typ string) *Error {
	return newError(codes.InvalidArgument, "Column %s has type %s, but is part of the primary key.", column, typ)
}

// TooManyKeyParts returns the error for a key with more than limit parts. kind is "Table" or "Index".
func TooManyKeyParts(kind, name string, parts, limit int) *Error {
	return newError(codes.InvalidArgument, "%s %s has too many keys (%d); the limit is %d.", kind, name, parts, limit)
}

// TooManyObjects returns the error for a new object in a database that already has limit objects of that kind.
func TooManyObjects(kind, name string, limit int) *Error {
	return newError(codes.FailedPrecondition, "Cannot add %s %s : too many of them (limit %d).", kind, name, limit)
}

// PlacementKeyColumn returns the error for PLACEMENT KEY on a column that cannot have it.
func PlacementKeyColumn(column string) *Error {
	return newError(codes.InvalidArgument, "Placement key column %s must be of type STRING and NOT NULL, without DEFAULT and not generated.", column)
}

// SeveralPlacementKeys returns the error for a table with more than one placement key.
func SeveralPlacementKeys(table string) *Error {
	return newError(codes.InvalidArgument, "Table %s has more than one placement key.", table)
}

// AddPlacementKey returns the error for ADD COLUMN ... PLACEMENT KEY.
func AddPlacementKey(table, column string) *Error {
	return newError(codes.InvalidArgument, "Cannot add placement key column %s.%s to existing table %s.", table, column, table)
}

// DropPlacementKey returns the error for DROP COLUMN of a placement key.
func DropPlacementKey(table, column string) *Error {
	return newError(codes.FailedPrecondition, "Cannot drop placement key column %s from table %s.", column, table)
}

// DropLocalityGroupInUse returns the error for DROP of a locality group that tables, columns or indexes name.
func DropLocalityGroupInUse(name string) *Error {
	return newError(codes.FailedPrecondition, "Locality group %s cannot be dropped as it is referenced.", name)
}

// CreateDefaultLocalityGroup returns the error for CREATE of the locality group that every database has.
func CreateDefaultLocalityGroup() *Error {
	return newError(codes.FailedPrecondition, "Default locality group cannot be created.")
}

// DropDefaultLocalityGroup returns the error for DROP of the locality group that every database has.
func DropDefaultLocalityGroup() *Error {
	return newError(codes.FailedPrecondition, "Default locality group cannot be dropped.")
}

// spannerTypes maps type names of other databases to Spanner's types.
var spannerTypes = map[string]string{
	"VARCHAR": "STRING(n)", "NVARCHAR": "STRING(n)", "CHAR": "STRING(n)", "NCHAR": "STRING(n)", "CHARACTER": "STRING(n)", "TEXT": "STRING(MAX)", "CLOB": "STRING(MAX)",
	"INT": "INT64", "INTEGER": "INT64", "BIGINT": "INT64", "SMALLINT": "INT64", "TINYINT": "INT64", "INT32": "INT64", "INT8": "INT64",
	"SERIAL": "INT64 GENERATED BY DEFAULT AS IDENTITY (BIT_REVERSED_POSITIVE)", "BIGSERIAL": "INT64 GENERATED BY DEFAULT AS IDENTITY (BIT_REVERSED_POSITIVE)",
	"FLOAT": "FLOAT64", "DOUBLE": "FLOAT64", "REAL": "FLOAT32", "DECIMAL": "NUMERIC", "NUMBER": "NUMERIC", "BOOLEAN": "BOOL",
	"DATETIME": "TIMESTAMP", "TIMESTAMPTZ": "TIMESTAMP", "BLOB": "BYTES(MAX)", "BYTEA": "BYTES(MAX)", "BINARY": "BYTES(n)", "VARBINARY": "BYTES(n)", "JSONB": "JSON",
}

// TypeHint returns a hint for an error about a type name: if other databases have that type, the hint is the name of
// Spanner's type.
func TypeHint(name string) string {
	if t := spannerTypes[strings.ToUpper(strings.Trim(name, "`"))]; t != "" {
		return "; Spanner's type is " + t
	}
	return ""
}
