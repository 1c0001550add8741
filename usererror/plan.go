package usererror

import "google.golang.org/grpc/codes"

// Errors from planning and running statements. Those from evaluating expressions are in eval.go.

// UnsupportedQueryShape reports that GoogleSQL accepts the statement but Crowfoot cannot plan it.
func UnsupportedQueryShape() *Error {
	return newError(codes.Unimplemented, "Unsupported query shape.")
}

// NullFilteredIndex reports that a hint FORCE_INDEX names a null-filtered index, in which rows that the query returns
// may be missing.
func NullFilteredIndex(index string) *Error {
	return newError(codes.InvalidArgument,
		"The index %s cannot be used: it is null-filtered, and the query does not exclude NULL values of its columns. "+
			"Add IS NOT NULL conditions on them.", index)
}

// NullLimit reports that LIMIT or OFFSET is NULL. clause says which.
func NullLimit(clause string) *Error {
	return newError(codes.InvalidArgument, "%s must not be NULL.", clause)
}

// NegativeRowLimit reports that LIMIT or OFFSET is negative. clause says which.
func NegativeRowLimit(clause string, n int64) *Error {
	return newError(codes.InvalidArgument, "%s must not be negative: %d", clause, n)
}

// UnnestLengths reports that UNNEST(..., mode => 'STRICT') got arrays of different lengths.
func UnnestLengths() *Error {
	return newError(codes.OutOfRange, "Unnested arrays under STRICT mode must have equal lengths.")
}

// InvalidCollation reports that ORDER BY ... COLLATE names no collation.
func InvalidCollation(name string) *Error {
	return newError(codes.InvalidArgument, "COLLATE has invalid collation name '%s'.", name)
}

// SampleSize reports that the size of TABLESAMPLE RESERVOIR is not a valid number of rows.
func SampleSize() *Error {
	return newError(codes.OutOfRange, "TABLESAMPLE requires a non-negative number of rows.")
}

// SamplePercent reports that the size of TABLESAMPLE BERNOULLI is not a percentage from 0 to 100.
func SamplePercent() *Error {
	return newError(codes.OutOfRange, "TABLESAMPLE PERCENT must be between 0 and 100.")
}

// ScalarSubqueryRows reports that a scalar subquery returned more than one row.
func ScalarSubqueryRows() *Error {
	return newError(codes.InvalidArgument, "A scalar subquery returned more than one row.")
}

// AssertRowsModified reports that a statement modified more or fewer rows than ASSERT_ROWS_MODIFIED requires.
func AssertRowsModified(want, got int64) *Error {
	return newError(codes.OutOfRange, "ASSERT_ROWS_MODIFIED expected %d rows modified, but found %d", want, got)
}

// UpdateTwice reports that UPDATE ... FROM joins a row of the table with several rows.
func UpdateTwice(table string) *Error {
	return newError(codes.OutOfRange, "UPDATE ... FROM must match at most one row of the FROM clause for each row of table %s.", table)
}

// PartitionedDMLQuery returns the error for PartitionQuery of a DML statement.
func PartitionedDMLQuery() *Error {
	return newError(codes.InvalidArgument, "DML statements cannot be partitioned by PartitionQuery.")
}

// PartitionedDMLStatement returns the error for a statement that cannot run as partitioned DML, such as INSERT.
func PartitionedDMLStatement() *Error {
	return newError(codes.InvalidArgument,
		"Partitioned DML takes UPDATE and DELETE statements without THEN RETURN and ASSERT_ROWS_MODIFIED only.")
}

// NotFullyPartitionable returns the error for a partitioned DML statement that must read other rows in order to change
// a row.
func NotFullyPartitionable() *Error {
	return newError(codes.InvalidArgument,
		"Only fully partitionable statements are supported for Partitioned DML: "+
			"each row must be changed without reading other rows or tables.")
}

// NotPartitionable returns the error for PartitionQuery of a query that cannot be computed separately for each part of
// one table.
func NotPartitionable() *Error {
	return newError(codes.InvalidArgument,
		"Query is not root partitionable since it does not have a DistributedUnion at the root. "+
			"Please check the conditions for a query to be root-partitionable.")
}

// ForUpdateWithHint returns the error for FOR UPDATE together with a hint that says how to lock.
func ForUpdateWithHint() *Error {
	return newError(codes.InvalidArgument, "FOR UPDATE is not supported in statements with a LOCK_SCANNED_RANGES hint.")
}

// ForUpdateReadOnly returns the error for FOR UPDATE in a read-only transaction, which takes no locks.
func ForUpdateReadOnly() *Error {
	return newError(codes.InvalidArgument, "FOR UPDATE is not supported in read-only transactions.")
}
