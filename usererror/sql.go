package usererror

import "google.golang.org/grpc/codes"

// InvalidSQL returns the error for a statement that GoogleSQL refuses. text is GoogleSQL's message, with the position:
// "Syntax error: ... [at 1:8]".
func InvalidSQL(text string) *Error {
	return newError(codes.InvalidArgument, "%s", text)
}

// SQLNotUTF8 returns the error for a statement that is not valid UTF-8.
func SQLNotUTF8() *Error {
	return newError(codes.InvalidArgument, "SQL statement is not valid UTF-8.")
}

// SQLTooLong returns the error for a statement of more than limit characters.
func SQLTooLong(length, limit int) *Error {
	return newError(codes.InvalidArgument, "Query string length of %d exceeds maximum allowed length of %d", length, limit)
}

// QueryLimit returns the error for a statement with more than limit elements of one kind. The parameter what is the
// name of the kind in the plural, such as "joins".
func QueryLimit(what string, limit int) *Error {
	return newError(codes.InvalidArgument, "Number of %s exceeds the maximum allowed limit of %d.", what, limit)
}

// QueryTooDeep returns the error for a statement that is nested too deeply. line and column, both from 1, are the
// position of the element that is too deep.
func QueryTooDeep(limit, line, column int) *Error {
	return newError(codes.InvalidArgument, "Query is nested deeper than the maximum allowed limit of %d. [at %d:%d]", limit, line, column)
}

// WindowClause returns the error for a WINDOW clause. line and column, both from 1, are its position.
func WindowClause(line, column int) *Error {
	return newError(codes.InvalidArgument, "Analytic functions not supported [at %d:%d]", line, column)
}

// SQLTooComplex returns the error for a statement whose analysis needs more than limit bytes of memory.
func SQLTooComplex(limit int64) *Error {
	return newError(codes.ResourceExhausted, "Analyzing the statement takes more than %d bytes of memory. Make it shorter, or have it name fewer columns.", limit)
}

// UnboundParameter returns the error for a parameter of the statement for which the request has no value.
func UnboundParameter(name string) *Error {
	return newError(codes.InvalidArgument, "No parameter found for binding: %s", name)
}

// SQLUnimplemented returns the error for a feature of GoogleSQL that Crowfoot does not have.
func SQLUnimplemented(feature string) *Error {
	return newError(codes.Unimplemented, "%s is not supported.", feature)
}

// FunctionUnimplemented returns the error for a function that Spanner has but Crowfoot does not have.
func FunctionUnimplemented(name string) *Error {
	return newError(codes.Unimplemented, "Unsupported built-in function: %s.", name)
}

// StructOutput returns the error for a query that would return a STRUCT column.
func StructOutput() *Error {
	return newError(codes.Unimplemented, "Unsupported query shape: A struct value cannot be returned as a column value. "+
		"Rewrite the query to flatten the struct fields in the result.")
}

// NullableStructArrayOutput returns the error for a query with an ARRAY<STRUCT> column that may be NULL.
func NullableStructArrayOutput() *Error {
	return newError(codes.Unimplemented, "Unsupported query shape: This query can return a null-valued array of struct, which is not supported by Spanner.")
}

// HintUnknown returns the error for a hint that does not exist, or that is not allowed at its place in the statement.
func HintUnknown(name string) *Error {
	return newError(codes.InvalidArgument, "Unsupported hint: %s.", name)
}

// HintValue returns the error for a value that a hint does not accept.
func HintValue(name, value string) *Error {
	return newError(codes.InvalidArgument, "Invalid hint value for: %s hint: %s.", name, value)
}

// OptimizerVersionUnsupported returns the error for a hint or an option of a query that names an optimizer version that
// does not exist.
func OptimizerVersionUnsupported(version string) *Error {
	return newError(codes.InvalidArgument, "Query optimizer version: %s is not supported.", shorten(version))
}

// StatisticsPackageNotFound returns the error for a hint or an option of a query that names an optimizer statistics
// package that does not exist.
func StatisticsPackageNotFound(name string) *Error {
	return newError(codes.InvalidArgument, "Requested optimizer statistics package not found: %s.", shorten(name))
}

// HintRepeated returns the error for a hint that is given twice for the same element of a statement.
func HintRepeated(name string) *Error {
	return newError(codes.InvalidArgument, "The hint: %s cannot be specified multiple times.", name)
}

// HintIndexNotFound returns the error for a hint FORCE_INDEX that names an index which the table does not have.
func HintIndexNotFound(table, index string) *Error {
	return newError(codes.InvalidArgument, "The table %s does not have a secondary index called %s.", table, index)
}

// SystemTableWrite returns the error for DML on a table of INFORMATION_SCHEMA or SPANNER_SYS.
func SystemTableWrite(table string) *Error {
	return newError(codes.InvalidArgument, "Table %s is read-only: system tables cannot be modified.", table)
}

// NoConflictTarget returns the error for ON CONFLICT with a target that is neither the primary key nor a unique index.
func NoConflictTarget(table string) *Error {
	return newError(codes.FailedPrecondition, "There is no unique constraint matching given specifications in the ON CONFLICT clause on table %s.", table)
}

// ColumnExprSubquery returns the error for a subquery in the expression of a DEFAULT, a generated column or a CHECK.
func ColumnExprSubquery() *Error {
	return newError(codes.InvalidArgument, "Subqueries are not allowed in the expression of a column or constraint.")
}

// UpdateKeyColumn returns the error for an UPDATE that sets a column of the primary key.
func UpdateKeyColumn(column string) *Error {
	return newError(codes.InvalidArgument, "Cannot modify a primary key column %s with UPDATE.", column)
}

// PendingCommitTimestampPlace returns the error for a call of PENDING_COMMIT_TIMESTAMP() that is a part of a larger
// expression.
func PendingCommitTimestampPlace() *Error {
	return newError(codes.InvalidArgument, "The PENDING_COMMIT_TIMESTAMP() function may only be used as a value for INSERT or UPDATE of an appropriately typed column.")
}
