package usererror

import "google.golang.org/grpc/codes"

// Errors about indexes.

// IndexWithoutKey returns the error for CREATE INDEX without key columns.
func IndexWithoutKey(index string) *Error {
	return newError(codes.InvalidArgument, "Index %s does not specify any key columns.", index)
}

// IndexColumnNotFound returns the error for an index on a column that the table does not have.
func IndexColumnNotFound(index, column string) *Error {
	return newError(codes.InvalidArgument,
		"Index %s specifies key column %s which does not exist in the index's base table.", index, column)
}

// IndexColumnTwice returns the error for an index that names a column twice.
func IndexColumnTwice(index, column string) *Error {
	return newError(codes.InvalidArgument, "Index %s specifies key column %s twice.", index, column)
}

// IndexColumnType returns the error for an index on a column of a type whose values have no order.
func IndexColumnType(index, column, typ string) *Error {
	return newError(codes.FailedPrecondition, "Cannot reference %s %s in the creation of index %s.", typ, column, index)
}

// IndexStoresKey returns the error for STORING of a column of the index's key.
func IndexStoresKey(index, column string) *Error {
	return newError(codes.InvalidArgument, "Index %s specifies stored column %s already specified as primary key.", index, column)
}

// IndexStoresTableKey returns the error for STORING of a column of the table's key.
func IndexStoresTableKey(index, column, table string) *Error {
	return newError(codes.FailedPrecondition, "Index %s specifies stored column %s which is a key of table %s.", index, column, table)
}

// IndexWhere returns the error for a WHERE clause of an index that has conditions other than column IS NOT NULL.
func IndexWhere(index string) *Error {
	return newError(codes.InvalidArgument, "The WHERE clause of index %s must be of the form column IS NOT NULL [AND ...].", index)
}

// IndexParentNotFound returns the error for an index interleaved in a table that does not exist.
func IndexParentNotFound(index, table string) *Error {
	return newError(codes.FailedPrecondition, "Cannot interleave index %s within nonexistent table %s.", index, table)
}

// IndexParentNoAncestor returns the error for an index interleaved in a table that is not an ancestor of the index's
// table.
func IndexParentNoAncestor(index, table, parent string) *Error {
	return newError(codes.FailedPrecondition, "Cannot interleave index %s of table %s within table %s because %s is not an ancestor of %s.",
		index, table, parent, parent, table)
}

// IndexSchema returns the error for an index whose named schema is not that of its table.
func IndexSchema(index, table string) *Error {
	return newError(codes.FailedPrecondition, "Index %s does not match the schema of the indexed table %s.", index, table)
}

// IndexColumnStored returns the error for ADD STORED COLUMN of a column that the index already has.
func IndexColumnStored(index, column string) *Error {
	return newError(codes.FailedPrecondition, "Column %s is already existed in index %s.", column, index)
}

// IndexColumnNotStored returns the error for DROP STORED COLUMN of a column that the index does not store.
func IndexColumnNotStored(index, column string) *Error {
	return newError(codes.NotFound, "Index %s does not have stored column %s.", index, column)
}

// Errors about expressions in DDL.

// BadDefault returns the error for a DEFAULT expression that does not compile.
func BadDefault(table, column string, cause error) *Error {
	return newError(codes.InvalidArgument, "Error parsing the default value of column `%s`.`%s`: %s", table, column, cause).quoting(cause)
}

// OnUpdateOfKey returns the error for ON UPDATE on a column of the primary key.
func OnUpdateOfKey(table, column string) *Error {
	return newError(codes.InvalidArgument, "Column %s.%s with ON UPDATE cannot be a part of or the whole primary key.", table, column)
}

// OnUpdateWithoutDefault returns the error for ON UPDATE on a column without a DEFAULT, or for DROP DEFAULT of a column
// with ON UPDATE.
func OnUpdateWithoutDefault(column string) *Error {
	return newError(codes.InvalidArgument, "Column `%s` with an ON UPDATE expression must have an identical DEFAULT value expression.", column)
}

// OnUpdateNotDefault returns the error for an ON UPDATE expression whose text differs from that of the column's
// DEFAULT.
func OnUpdateNotDefault(column string) *Error {
	return newError(codes.InvalidArgument, "The ON UPDATE expression of column `%s` does not match the DEFAULT value expression.", column)
}

// OnUpdateExpression returns the error for an ON UPDATE expression that is not the commit timestamp.
func OnUpdateExpression() *Error {
	return newError(codes.InvalidArgument, "PENDING_COMMIT_TIMESTAMP() is the only supported ON UPDATE expression.")
}

// CommitTimestampDefault returns the error for a column with allow_commit_timestamp whose DEFAULT is not the commit
// timestamp.
func CommitTimestampDefault(column string) *Error {
	return newError(codes.FailedPrecondition,
		"The only default value expression permitted for commit timestamp column `%s` is PENDING_COMMIT_TIMESTAMP().", column)
}

// PendingTimestampDefault returns the error for the commit timestamp as the DEFAULT of a column without
// allow_commit_timestamp.
func PendingTimestampDefault(column string) *Error {
	return newError(codes.FailedPrecondition,
		"Cannot use default value expression PENDING_COMMIT_TIMESTAMP() on column `%s` without the allow_commit_timestamp column option.", column)
}

// BadGenerated returns the error for a generated column that does not compile.
func BadGenerated(table, column string, cause error) *Error {
	return newError(codes.InvalidArgument, "Error parsing the definition of generated column `%s`.`%s`: %s", table, column, cause).quoting(cause)
}

// BadCheck returns the error for a check constraint that does not compile.
func BadCheck(table, check, sql string, cause error) *Error {
	return newError(codes.InvalidArgument, "Error parsing expression '%s' from check constraint '%s' in table '%s': %s",
		shorten(sql), check, table, cause).quoting(cause)
}

// DefaultReadsColumn returns the error for a DEFAULT expression that reads another column.
func DefaultReadsColumn(column string) *Error {
	return newError(codes.InvalidArgument,
		"Default value expression of column `%s` has a reference to another column. Default expressions referencing other columns are not supported.",
		column)
}

// NonDeterministic returns the error for a generated column or check constraint that calls a function whose value can
// differ from call to call. use says which of the two it is.
func NonDeterministic(function, use string) *Error {
	return newError(codes.FailedPrecondition,
		"Expression is non-deterministic due to the use of non-deterministic function `%s`. Expression of %s must yield the same value for the same dependent column values. Non-deterministic functions inside the expressions are not allowed.",
		function, use)
}

// GeneratedReadsCommitTimestamp returns the error for a generated column that reads a column with
// allow_commit_timestamp.
func GeneratedReadsCommitTimestamp(column string) *Error {
	return newError(codes.FailedPrecondition, "Cannot use commit timestamp column `%s` as a dependency of a generated column.", column)
}

// GeneratedCycle returns the error for a generated column that depends on itself through other generated columns.
// columns lists them as "a,b".
func GeneratedCycle(columns string) *Error {
	return newError(codes.FailedPrecondition, "Cycle detected while analysing generated column, which include objects (%s)", columns)
}

// GeneratedKey returns the error for a generated column that cannot be part of the primary key. reason says why.
func GeneratedKey(column, reason string) *Error {
	return newError(codes.InvalidArgument, "Generated column `%s` cannot be part of the primary key: %s.", column, reason)
}

// CheckReadsCommitTimestamp returns the error for a check constraint that reads a column with allow_commit_timestamp.
func CheckReadsCommitTimestamp(column string) *Error {
	return newError(codes.InvalidArgument, "Column `%s` has option commit_timestamp, which is not supported in check constraint.", column)
}

// CheckReadsNoColumn returns the error for a check constraint that reads no column except generated ones.
func CheckReadsNoColumn(table, check, sql string) *Error {
	return newError(codes.InvalidArgument,
		"Check constraint `%s`.`%s` does not use any non generated column. Expression: '%s'. A check constraint expression requires at least one non-generated column as dependency.",
		table, check, shorten(sql))
}

// Errors about foreign keys.

// ForeignKeyColumnCount returns the error for a foreign key that names more columns of one of its two tables than of
// the other.
func ForeignKeyColumnCount(table, referenced, foreignKey string) *Error {
	return newError(codes.FailedPrecondition, "The number of columns are different for table `%s` and table `%s` in foreign key `%s`.",
		table, referenced, foreignKey)
}

// ForeignKeyColumnTwice returns the error for a foreign key that names a column twice.
func ForeignKeyColumnTwice(column, table, foreignKey string) *Error {
	return newError(codes.FailedPrecondition, "Column `%s` used more than once for table `%s` in foreign key `%s`.", column, table, foreignKey)
}

// ForeignKeyColumnNotFound returns the error for a foreign key on a column that does not exist.
func ForeignKeyColumnNotFound(column, table, foreignKey string) *Error {
	return newError(codes.FailedPrecondition, "Column `%s` not found for table `%s` in foreign key `%s`.", column, table, foreignKey)
}

// ForeignKeyColumnType returns the error for a foreign key on a column of a type whose values cannot be compared.
func ForeignKeyColumnType(column, table, foreignKey string) *Error {
	return newError(codes.FailedPrecondition, "Column `%s` for foreign key `%s` on table `%s` has an unsupported type.",
		column, foreignKey, table)
}

// ForeignKeyCommitTimestamp returns the error for a foreign key on a column with allow_commit_timestamp.
func ForeignKeyCommitTimestamp(column, table, foreignKey string) *Error {
	return newError(codes.FailedPrecondition, "Commit timestamp column is not supported for column `%s` of table `%s` in foreign key `%s`.",
		column, table, foreignKey)
}

// ForeignKeyTypeMismatch returns the error for a foreign key between columns of different types.
func ForeignKeyTypeMismatch(column, table, refColumn, refTable, foreignKey string) *Error {
	return newError(codes.FailedPrecondition,
		"The column types are different for column `%s` of table `%s` and column `%s` of table `%s` in foreign key `%s`.",
		column, table, refColumn, refTable, foreignKey)
}
