package usererror

import "google.golang.org/grpc/codes"

// Faults of planning and running statements, beside those of the values in them (eval.go).

// UnsupportedQueryShape: the statement means something that no plan does.
func UnsupportedQueryShape() *Error {
	return newError(codes.Unimplemented, "Unsupported query shape.")
}

// NullFilteredIndex: FORCE_INDEX names an index that leaves rows out which the query may want.
func NullFilteredIndex(index string) *Error {
	return newError(codes.InvalidArgument,
		"The index %s cannot be used: it is null-filtered, and the query does not exclude NULL values of its columns. "+
			"Add IS NOT NULL conditions on them.", index)
}

// NullLimit: LIMIT or OFFSET is NULL.
func NullLimit(clause string) *Error {
	return newError(codes.InvalidArgument, "%s must not be NULL.", clause)
}

// NegativeRowLimit: LIMIT or OFFSET is negative.
func NegativeRowLimit(clause string, n int64) *Error {
	return newError(codes.InvalidArgument, "%s must not be negative: %d", clause, n)
}

// UnnestLengths: UNNEST(..., mode => 'STRICT') got arrays of different lengths.
func UnnestLengths() *Error {
	return newError(codes.OutOfRange, "Unnested arrays under STRICT mode must have equal lengths.")
}

// InvalidCollation: ORDER BY ... COLLATE names no collation.
func InvalidCollation(name string) *Error {
	return newError(codes.InvalidArgument, "COLLATE has invalid collation name '%s'.", name)
}

// SampleSize: TABLESAMPLE RESERVOIR got no number of rows.
func SampleSize() *Error {
	return newError(codes.OutOfRange, "TABLESAMPLE requires a non-negative number of rows.")
}

// SamplePercent: TABLESAMPLE BERNOULLI got no percentage.
func SamplePercent() *Error {
	return newError(codes.OutOfRange, "TABLESAMPLE PERCENT must be between 0 and 100.")
}

// ScalarSubqueryRows: a scalar subquery has more than one row.
func ScalarSubqueryRows() *Error {
	return newError(codes.InvalidArgument, "A scalar subquery returned more than one row.")
}

// AssertRowsModified: ASSERT_ROWS_MODIFIED and what was modified differ.
func AssertRowsModified(want, got int64) *Error {
	return newError(codes.OutOfRange, "ASSERT_ROWS_MODIFIED expected %d rows modified, but found %d", want, got)
}

// UpdateTwice: UPDATE ... FROM joins a row of the table with several rows.
func UpdateTwice(table string) *Error {
	return newError(codes.OutOfRange, "UPDATE ... FROM must match at most one row of the FROM clause for each row of table %s.", table)
}

// PartitionedDMLQuery: PartitionQuery of something that is not a query.
func PartitionedDMLQuery() *Error {
	return newError(codes.InvalidArgument, "DML statements cannot be partitioned by PartitionQuery.")
}

// PartitionedDMLStatement: a statement that partitioned DML does not have.
func PartitionedDMLStatement() *Error {
	return newError(codes.InvalidArgument,
		"Partitioned DML takes UPDATE and DELETE statements without THEN RETURN and ASSERT_ROWS_MODIFIED only.")
}

// NotFullyPartitionable: partitioned DML that reads more than the row it changes.
func NotFullyPartitionable() *Error {
	return newError(codes.InvalidArgument,
		"Only fully partitionable statements are supported for Partitioned DML: "+
			"each row must be changed without reading other rows or tables.")
}

// NotPartitionable: PartitionQuery of a query whose answer is not the sum of answers over parts of one table.
func NotPartitionable() *Error {
	return newError(codes.InvalidArgument,
		"Query is not root partitionable since it does not have a DistributedUnion at the root. "+
			"Please check the conditions for a query to be root-partitionable.")
}

// ForUpdateWithHint: FOR UPDATE says how to lock already.
func ForUpdateWithHint() *Error {
	return newError(codes.InvalidArgument, "FOR UPDATE is not supported in statements with a LOCK_SCANNED_RANGES hint.")
}

// ForUpdateReadOnly: FOR UPDATE where nothing is locked.
func ForUpdateReadOnly() *Error {
	return newError(codes.InvalidArgument, "FOR UPDATE is not supported in read-only transactions.")
}
